#include "model/refit.hpp"

#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

TEST(Resolve, gives_each_tensor_of_a_layer_the_ranks_of_its_stage) {
  const Refit refit = resolve(read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml"));
  for (const RefitEntry& entry : refit.tensors) {
    EXPECT_EQ(entry.source_base.value, 16U * static_cast<std::uint32_t>(entry.stage));
    EXPECT_EQ(entry.target_base.value, 256U);
  }
  EXPECT_EQ(refit.tensors.front().stage, 0);
  EXPECT_EQ(refit.tensors.back().stage, 15);
}

TEST(Resolve, takes_a_path_that_no_file_can_have_for_one_that_is_not_there) {
  for (const std::size_t length : {std::size_t{9}, std::size_t{300}, std::size_t{4000}}) {
    const std::string config = "model: {config: " + std::string(length, 'x') + "}";
    EXPECT_THROW(resolve(parsed(replaced(whole_refit, "model: {config: m.json}", config))), InputError);
  }
}

TEST(Resolve, selects_bulk_tensors_by_regular_expression) {
  const Scenario scenario = read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml",
                                          {{"refit.bulk", "{match: ['self_attn']}"}});
  for (const RefitEntry& entry : resolve(scenario).tensors) {
    const bool attention = entry.tensor.name.find("self_attn") != std::string::npos;
    EXPECT_EQ(entry.tensor.role, attention ? Role::bulk : Role::misc) << entry.tensor.name;
  }
}

}  // namespace
}  // namespace isthmus
