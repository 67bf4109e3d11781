#include "model/refit.hpp"

#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::refit_test {
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

std::vector<std::uint32_t> gpus_of(const Refit& refit) {
  std::vector<std::uint32_t> gpus;
  for (const GpuId gpu : refit.gpu_of_rank) gpus.push_back(gpu.value);
  return gpus;
}

constexpr std::string_view pair_of_gpus =
    "tensor: {name: w, shape: [4], dtype: bf16}\nsource: {mesh: [1], first_rank: 0, placements: "
    "[replicated]}\n"
    "target: {mesh: [1], first_rank: 9, placements: [replicated]}\nfabric: {preset: dgx-h100, hosts: 3}\n";

TEST(Resolve, gives_ranks_to_idle_gpus_beside_members_where_any_gpu_may_relay) {
  const Refit refit = resolve(parsed(std::string(pair_of_gpus)));
  EXPECT_EQ(refit.members(), 10U);
  EXPECT_EQ(refit.relay_ranks, 6U);
  EXPECT_EQ(gpus_of(refit),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  const Refit alone = resolve(parsed(std::string(pair_of_gpus) + "refit: {relay: members}\n"));
  EXPECT_EQ(alone.members(), 10U);
  EXPECT_EQ(alone.relay_ranks, 0U);
}

TEST(Resolve, counts_relay_ranks_of_a_model_after_its_members) {
  const Refit refit = resolve(read_scenario(project_folder() / "scenarios/qwen3-4b-h100.yaml",
                                            {{"train.gpus", "4"}, {"train.tp", "4"}}));
  EXPECT_EQ(refit.members(), refit.train_ranks + refit.generate_ranks);
  EXPECT_EQ(refit.relay_ranks, 4U);
  EXPECT_EQ(gpus_of(refit).back(), 7U);
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
}  // namespace isthmus::refit_test
