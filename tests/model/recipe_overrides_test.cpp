#include "model/recipe_overrides.hpp"

#include <gtest/gtest.h>

#include "model/input.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

Scenario scenario_with(const std::string& train, const std::string& generate) {
  const std::string text =
      "name: s\nmodel: {config: models/qwen3-235b-a22b.json}\n"
      "fabric: {preset: dgx-h100-superpod, hosts: 32, nic_bandwidth: 400 Gbit/s}\n"
      "train: {gpus: 128, " +
      train + "}\ngenerate: {gpus: 128, " + generate + "}\n";
  return parse_scenario(text, project_folder() / "scenarios/s.yaml");
}

constexpr const char* sides = "tp: 4, ep: 16, etp: 1, pp: 8, layers_first: 11, layers_last: 11";

TEST(RecipeOverrides, give_the_scenarios_sides_when_a_recipe_is_read_with_them) {
  const Scenario scenario = scenario_with(sides, "tp: 8, ep: 8");
  const RecipeOverrides made = recipe_overrides(scenario, "striped", 8, true);
  ASSERT_TRUE(made.reasons.empty());
  const TemporaryFolder folder;
  const auto recipe = folder.write(
      "recipe.yaml",
      "cluster: {num_nodes: 2, gpus_per_node: 8}\n"
      "policy:\n  precision: bfloat16\n  megatron_cfg: {enabled: true}\n  dtensor_cfg: {enabled: false}\n"
      "  generation: {backend: vllm, colocated: {enabled: true, resources: {num_nodes: 1}}, vllm_cfg: {}}\n");
  std::vector<Override> overrides;
  for (const std::string& line : made.lines) {
    overrides.emplace_back(line.substr(0, line.find('=')), line.substr(line.find('=') + 1));
  }
  const Input input =
      read_input(recipe, overrides, project_folder() / "scenarios/models/qwen3-235b-a22b.json");
  EXPECT_TRUE(input.nemo_rl.empty());
  ASSERT_TRUE(input.scenario.train && input.scenario.generate);
  EXPECT_EQ(*input.scenario.train, *scenario.train);
  EXPECT_EQ(*input.scenario.generate, *scenario.generate);
}

TEST(RecipeOverrides, give_reasons_for_what_nemo_rl_does_not_support) {
  const RecipeOverrides pipeline = recipe_overrides(scenario_with(sides, "tp: 8, pp: 2"), "striped", 8, true);
  ASSERT_EQ(pipeline.reasons.size(), 1U);
  EXPECT_EQ(pipeline.reasons.front().where.key, "generate.pp");
  EXPECT_TRUE(pipeline.lines.empty());
  const Scenario by_default = scenario_with("tp: 4, ep: 4, pp: 2", "tp: 8");  // etp is tp then
  EXPECT_EQ(recipe_overrides(by_default, "striped", 8, true).reasons.size(), 1U);
  EXPECT_EQ(recipe_overrides(by_default, "striped", 8, false).reasons.size(), 0U);
}

}  // namespace
}  // namespace isthmus
