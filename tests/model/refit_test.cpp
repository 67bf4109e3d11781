#include "model/refit.hpp"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/grid.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

/// The main scenario with other grids: the model has 256 experts and 61 layers.
Scenario scenario_of(const TrainSpec& train, const GenerateSpec& generate) {
  Scenario scenario = read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml");
  scenario.train = train;
  scenario.generate = generate;
  scenario.train_ranks.reset();
  scenario.generate_ranks.reset();
  return scenario;
}

RefitTensor expert_tensor(TensorParallel split) {
  RefitTensor tensor;
  tensor.name = "model.layers.0.mlp.experts.gate_proj.weight";
  tensor.shape = {256, 2048, 7168};
  tensor.expert = true;
  tensor.tensor_parallel = split;
  return tensor;
}

TEST(Grid, of_a_stage_puts_tp_innermost_and_experts_by_rank_modulo_ep) {
  const Scenario scenario =
      scenario_of({16, 2, 1, 8, 2, 1, std::nullopt, std::nullopt}, {8, 8, 1, std::nullopt});
  const Layout expert = train_layout(scenario, expert_tensor(TensorParallel::rows));
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(expert.region(rank).begin[0], 32 * rank) << rank;  // 8 ranks a stage, 32 experts each
  }
  RefitTensor dense;
  dense.name = "model.layers.0.mlp.gate_proj.weight";
  dense.shape = {18432, 7168};
  dense.tensor_parallel = TensorParallel::rows;
  const Layout layout = train_layout(scenario, dense);
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(layout.region(rank).begin[0], 9216 * (rank % 2)) << rank;
}

TEST(Grid, expert_tensor_parallel_unset_means_tp) {
  const Scenario scenario =
      scenario_of({16, 2, 1, 4, 2, std::nullopt, std::nullopt, std::nullopt}, {8, 8, 1, std::nullopt});
  const Layout layout = train_layout(scenario, expert_tensor(TensorParallel::columns));
  EXPECT_EQ(layout.region(1).begin[2], 3584);  // rank 1: second half of the last dimension
  EXPECT_EQ(layout.region(2).begin[0], 64);    // rank 2: next 64 experts
}

TEST(Grid, generation_shards_experts_over_tp_or_keeps_them_whole_over_ep) {
  const TrainSpec train{16, 1, 1, 16, 1, 1, std::nullopt, std::nullopt};
  const Layout by_tp =
      generate_layout(scenario_of(train, {16, 8, 1, std::nullopt}), expert_tensor(TensorParallel::rows));
  EXPECT_EQ(by_tp.region(9).begin[1], 256);
  EXPECT_EQ(by_tp.region(9).begin[0], 0);
  const Layout whole =
      generate_layout(scenario_of(train, {16, 8, 8, std::nullopt}), expert_tensor(TensorParallel::rows));
  EXPECT_EQ(whole.region(9).begin[0], 32);
  EXPECT_EQ(whole.region(9).end[1], 2048);
}

TEST(Grid, stages_follow_first_and_last_and_deal_the_rest_evenly) {
  const Scenario scenario = scenario_of({256, 1, 1, 16, 16, 1, 3, 2}, {256, 32, 1, std::nullopt});
  const StageMap map = stage_map(scenario, 61);
  RefitTensor tensor;
  tensor.home = Home::layer;
  const std::map<int, int> expected{{0, 0}, {2, 0}, {3, 1}, {6, 1}, {7, 2}, {58, 14}, {59, 15}, {60, 15}};
  for (const auto& [layer, stage] : expected) {
    tensor.layer = layer;
    EXPECT_EQ(map.stage_of(tensor), stage) << layer;
  }
}

RC_GTEST_PROP(Grid, regions_of_all_ranks_tile_each_tensor_with_its_replication, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int tp = power(3), cp = power(1), dp = power(2), pp = *rc::gen::element(1, 61);
  const int stage = tp * cp * dp, ep = std::min(stage, power(4));
  const int gen_tp = power(4), engines = power(2);
  const bool whole = *rc::gen::arbitrary<bool>();
  Scenario scenario = scenario_of({stage * pp, tp, cp, ep, pp, 1, std::nullopt, std::nullopt},
                                  {gen_tp * engines, gen_tp, whole ? gen_tp : 1, std::nullopt});
  scenario.fabric.hosts = 512;
  const Refit refit = resolve(scenario);
  for (const Geometry& geometry : refit.geometries) {
    for (const Layout* layout : {&geometry.source, &geometry.target}) {
      std::map<Region, std::int64_t> copies;
      for (const Region& region : layout->regions()) ++copies[region];
      std::int64_t volume = 0;
      for (const auto& [region, count] : copies) {
        volume += region.volume();
        RC_ASSERT(count == copies.begin()->second);  // every shard has the same number of replicas
      }
      RC_ASSERT(volume == geometry.source.bytes().value / 2);
      RC_ASSERT(static_cast<std::int64_t>(copies.size()) * copies.begin()->second ==
                static_cast<std::int64_t>(layout->mesh.size()));
    }
  }
  std::set<std::uint32_t> gpus;
  for (const GpuId gpu : refit.gpu_of_rank) gpus.insert(gpu.value);
  RC_ASSERT(gpus.size() == refit.ranks());  // the rank map is a bijection onto GPUs
}

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
