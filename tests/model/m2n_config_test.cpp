#include "model/m2n_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit.hpp"
#include "model/stages.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::m2n_config_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view text = R"({
    "_comment": "DeepSeek-V3 on 256 GPUs",
    "train": {
        "num_gpus": 128,
        "tp_size": 1,
        "cp_size": 1,
        "ep_size": 16,
        "pp_size": 8,
        "fsdp_size": 1,
        "dp_size": 1
    },
    "generation": {"num_gpus": 128, "tp_size": 8, "cp_size": 1, "ep_size": 1, "pp_size": 1, "dp_size": 16}
}
)";

std::filesystem::path model() { return project_folder() / "scenarios/models/deepseek-v3.json"; }

Input read(const std::vector<Override>& overrides = {}) {
  const TemporaryFolder folder;
  return read_input(folder.write("m2n.json", text), overrides, model());
}

TEST(M2nConfig, becomes_the_scenario_of_its_grids_with_everything_resharded) {
  const Input input = read();
  EXPECT_EQ(input.kind, InputKind::m2n_config);
  const Scenario& scenario = require_scenario(input);
  EXPECT_EQ(scenario.train->gpus, 128);
  EXPECT_EQ(scenario.train->ep, 16);
  EXPECT_EQ(scenario.train->etp, 1);
  EXPECT_EQ(scenario.train->pp, 8);
  GenerateSpec expected{128, 8, 1, 16};
  expected.vocabulary_multiple = 1;
  EXPECT_EQ(*scenario.generate, expected);
  EXPECT_EQ(scenario.fabric.hosts, 32);
  EXPECT_EQ(scenario.refit.bulk.kind, BulkRule::Kind::all);
}

TEST(M2nConfig, puts_layer_l_of_61_on_stage_l_8_over_61) {
  const Scenario scenario = read().scenario;
  const StageMap map = train_stage_map(scenario, 61);
  EXPECT_EQ(map.of_layer.size(), 61U);
  RefitTensor tensor;
  tensor.home = Home::layer;
  for (tensor.layer = 0; tensor.layer < 61; ++tensor.layer) {
    EXPECT_EQ(map.stage_of(tensor), tensor.layer * 8 / 61) << tensor.layer;
  }
  EXPECT_EQ(resolve(scenario).stages, 8);
}

TEST(M2nConfig, layer_split_goes_through_yaml_and_back) {
  const Scenario scenario = read().scenario;
  EXPECT_TRUE(same_content(parse_scenario(to_yaml(scenario), scenario.file), scenario));
}

TEST(M2nConfig, notes_a_training_dp_that_the_grid_contradicts) {
  EXPECT_THAT(read().notes, Contains(HasSubstr("train.dp_size is 1, but the grid gives 16")));
  EXPECT_TRUE(read({{"train.dp_size", "16"}}).notes.empty());
}

TEST(M2nConfig, names_its_own_keys_and_lines) {
  const Location where = read().scenario.at("train.ep");
  EXPECT_EQ(where.key, "train.ep_size");
  EXPECT_EQ(where.line, 7);
}

TEST(M2nConfig, that_no_scenario_can_express_has_obstacles) {
  for (const std::string key :
       {"train.fsdp_size", "generation.fsdp_size", "generation.cp_size", "generation.pp_size"}) {
    const Input input = read({{key, "2"}});
    ASSERT_EQ(input.obstacles.size(), 1U) << key;
    EXPECT_EQ(input.obstacles.front().where.key, key);
    EXPECT_EQ(input.obstacles.front().change, "1");
    EXPECT_THROW(require_scenario(input), InputError);
  }
}

TEST(M2nConfig, unknown_and_missing_keys_are_faults_of_the_file) {
  EXPECT_THROW(read({{"train.tp", "2"}}), InputError);
  EXPECT_THROW(read({{"generation.tp_size", "0"}}), InputError);
  const TemporaryFolder folder;
  EXPECT_THROW(read_input(folder.write("a.json", R"({"train": {"num_gpus": 8}})")), InputError);
  EXPECT_THROW(read_input(folder.write("b.json", R"({"train": {"num_gpus": 8}, "generation": {}})")),
               InputError);
}

}  // namespace
}  // namespace isthmus::m2n_config_test
