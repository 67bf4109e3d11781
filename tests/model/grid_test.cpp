#include "model/grid.hpp"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/refit.hpp"
#include "tests/support/project_files.hpp"

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

/// What the formulas of the field say a rank holds of one tensor; independent of meshes. See
/// model/grid.hpp for the grids.
struct Cut {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Cut&, const Cut&) = default;
};

Cut even_cut(std::int64_t n, std::int64_t pieces, std::int64_t index) {
  return {index * (n / pieces), (index + 1) * (n / pieces)};
}

/// Coordinates of a rank by mixed radix: the leftmost axis of the order varies fastest.
std::map<std::string, std::int64_t> decode(const std::vector<std::string>& order,
                                           std::map<std::string, std::int64_t> sizes, std::int64_t rank) {
  std::map<std::string, std::int64_t> at;
  for (const std::string& axis : order) {
    at[axis] = rank % sizes[axis];
    rank /= sizes[axis];
  }
  return at;
}

std::vector<std::string> pick_order() {
  std::vector<std::string> axes{"tp", "cp", "ep", "dp"};
  for (std::size_t i = 0; i < axes.size(); ++i) std::swap(axes[i], axes[*rc::gen::inRange(i, axes.size())]);
  return axes;
}

RefitTensor dense_tensor(std::int64_t rows, TensorParallel split, std::int64_t heads = 0) {
  RefitTensor tensor;
  tensor.name = "model.layers.0.self_attn.k_proj.weight";
  tensor.shape = {rows, 64};
  tensor.tensor_parallel = split;
  tensor.key_value_heads = heads;
  return tensor;
}

Cut rows_of(const Layout& layout, std::size_t position, std::size_t dimension = 0) {
  const Region region = layout.region(position);
  return {region.begin.at(dimension), region.end.at(dimension)};
}

RC_GTEST_PROP(Grid, any_order_gives_each_rank_the_shards_of_its_coordinates, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int tp = power(2), cp = power(2), dp = power(2), stage = tp * cp * dp;
  const int etp = power(1), ep = std::min(power(3), std::max(1, stage / etp));
  RC_PRE(etp * ep <= stage);
  const std::vector<std::string> order = pick_order();
  TrainSpec train{stage, tp, cp, ep, 1, etp, std::nullopt, std::nullopt};
  train.order = fmt::format("{}-pp", fmt::join(order, "-"));
  const Scenario scenario = scenario_of(train, {8, 8, 1, std::nullopt});
  const Layout dense = train_layout(scenario, dense_tensor(32, TensorParallel::rows));
  const Layout expert = train_layout(scenario, expert_tensor(TensorParallel::columns));
  std::set<Rank> ranks;
  for (std::size_t position = 0; position < dense.mesh.size(); ++position) {
    const std::int64_t rank = dense.mesh.ranks[position].value;
    const auto at = decode(order, {{"tp", tp}, {"cp", cp}, {"ep", 1}, {"dp", dp}}, rank);
    RC_ASSERT(rows_of(dense, position) == even_cut(32, tp, at.at("tp")));
    ranks.insert(dense.mesh.ranks[position]);
  }
  RC_ASSERT(ranks.size() == to_size(stage));
  for (std::size_t position = 0; position < expert.mesh.size(); ++position) {
    const std::int64_t rank = expert.mesh.ranks[position].value;
    const auto at = decode(order, {{"tp", etp}, {"cp", 1}, {"ep", ep}, {"dp", stage / (etp * ep)}}, rank);
    RC_ASSERT(rows_of(expert, position, 0) == even_cut(256, ep, at.at("ep")));
    RC_ASSERT(rows_of(expert, position, 2) == even_cut(7168, etp, at.at("tp")));
    ranks.erase(expert.mesh.ranks[position]);
  }
  RC_ASSERT(ranks.empty());  // both grids lie over the same ranks of the stage
}

// NeMo RL's meshes: non-expert [n / TP, TP] and expert [n / EP, EP], the last axis fastest, ETP 1.
RC_GTEST_PROP(Grid, of_the_usual_order_is_the_mesh_of_nemo_rl, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int tp = power(3), cp = power(1), dp = power(2), n = tp * cp * dp, ep = std::min(n, power(4));
  const Scenario scenario =
      scenario_of({n, tp, cp, ep, 1, 1, std::nullopt, std::nullopt}, {8, 8, 1, std::nullopt});
  const Layout dense = train_layout(scenario, dense_tensor(32, TensorParallel::rows));
  const Layout expert = train_layout(scenario, expert_tensor(TensorParallel::rows));
  for (std::int64_t rank = 0; rank < n; ++rank) {
    RC_ASSERT(std::int64_t{dense.mesh.ranks[to_size(rank)].value} == rank);
    RC_ASSERT(rows_of(dense, to_size(rank)) == even_cut(32, tp, rank % tp));
    RC_ASSERT(rows_of(expert, to_size(rank)) == even_cut(256, ep, rank % ep));
  }
}

RC_GTEST_PROP(Grid, of_fsdp_shards_each_tensor_once_within_a_replica, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int tp = power(2), fsdp = 2 * power(2), replicas = power(2), ep = std::min(power(4), tp * fsdp);
  const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 9) * tp;
  TrainSpec train{tp * fsdp * replicas, tp, 1, ep, 1, 1, std::nullopt, std::nullopt};
  train.fsdp = fsdp;
  const Scenario scenario = scenario_of(train, {8, 8, 1, std::nullopt});
  RC_ASSERT(grid_faults(scenario, Inventory{"m", "", 1, 256, {}}).empty());
  for (const RefitTensor& tensor :
       {dense_tensor(rows, TensorParallel::rows), dense_tensor(rows, TensorParallel::columns),
        dense_tensor(rows, TensorParallel::replicated), expert_tensor(TensorParallel::rows)}) {
    const Layout layout = train_layout(scenario, tensor);
    RC_ASSERT(faults(layout).empty());
    Bytes held;
    for (const Region& region : layout.regions()) held += layout.bytes(region);
    const bool whole = tensor.tensor_parallel == TensorParallel::replicated && !tensor.expert;
    RC_ASSERT(held == layout.bytes() * (whole ? replicas * tp : replicas));
  }
}

RC_GTEST_PROP(Grid, copies_lie_where_the_experts_they_copy_lie, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int tp = power(1), fsdp = power(6), ep = std::min(power(4), tp * fsdp), slots = 8 * power(2);
  TrainSpec train{tp * fsdp * 2, tp, 1, ep, 1, 1, std::nullopt, std::nullopt};
  train.fsdp = fsdp;
  GenerateSpec generate{16, 8, 8, std::nullopt};
  generate.redundant_experts = slots;
  const Scenario scenario = scenario_of(train, generate);
  RefitTensor copies = expert_tensor(TensorParallel::rows);
  copies.copy_of = copies.shape.front();
  copies.shape.front() = slots;
  const Layout all = train_layout(scenario, expert_tensor(TensorParallel::rows));
  const Layout some = train_layout(scenario, copies);
  RC_ASSERT(all.mesh == some.mesh);
  for (std::size_t position = 0; position < all.mesh.size(); ++position) {
    Region first = whole(all.shape);
    first.end[0] = slots;
    const Region expected = intersect(all.region(position), first), region = some.region(position);
    RC_ASSERT(region == expected || (region.empty() && expected.empty()));
  }
}

TEST(Grid, a_head_tied_to_the_embedding_is_also_on_the_last_generation_stage) {
  const std::vector<Override> overrides{{"fabric.hosts", "3"}, {"generate", "{gpus: 16, tp: 4, pp: 4}"}};
  const Refit refit = resolve(read_scenario(project_folder() / "scenarios/qwen3-4b-h100.yaml", overrides));
  const RefitEntry& head = refit.tensors.back();
  EXPECT_EQ(head.tensor.name, "model.embed_tokens.weight.tied");
  EXPECT_TRUE(head.tensor.copy);
  EXPECT_EQ(head.stage, 0);
  EXPECT_EQ(refit.geometries[head.geometry].target.mesh.ranks.front(), Rank{12});
  EXPECT_EQ(
      resolve(read_scenario(project_folder() / "scenarios/qwen3-4b-h100.yaml")).tensors.back().tensor.name,
      "model.norm.weight");
}

RC_GTEST_PROP(Grid, heads_fewer_than_ranks_are_repeated_to_neighbours, ()) {
  const auto power = [](int most) { return 1 << *rc::gen::inRange(0, most + 1); };
  const int heads = power(3), tp = power(5), engines = power(1);
  Scenario scenario =
      scenario_of({tp, tp, 1, 1, 1, 1, std::nullopt, std::nullopt}, {tp * engines, tp, 1, std::nullopt});
  const RefitTensor tensor = dense_tensor(heads * 32, TensorParallel::rows, heads);
  const Layout layout = generate_layout(scenario, tensor), train = train_layout(scenario, tensor);
  for (std::size_t position = 0; position < layout.mesh.size(); ++position) {
    const std::int64_t t = std::int64_t{layout.mesh.ranks[position].value} % tp;
    const Cut expected =
        tp <= heads ? even_cut(heads * 32, tp, t) : even_cut(heads * 32, heads, t * heads / tp);
    RC_ASSERT(rows_of(layout, position) == expected);
  }
  for (std::size_t position = 0; position < train.mesh.size(); ++position) {  // Megatron-LM cuts rows
    RC_ASSERT(rows_of(train, position) ==
              even_cut(heads * 32, tp, std::int64_t{train.mesh.ranks[position].value} % tp));
  }
  scenario.model->repeat_kv_heads = false;
  RC_ASSERT(rows_of(generate_layout(scenario, tensor), 0) == even_cut(heads * 32, tp, 0));
}

TEST(Grid, pads_the_vocabulary_as_each_engine_does) {
  const Scenario scenario =
      scenario_of({4, 4, 1, 1, 1, 1, std::nullopt, std::nullopt}, {8, 8, 1, std::nullopt});
  const RefitTensor tensor = dense_tensor(151'936, TensorParallel::vocabulary);
  const Layout train = train_layout(scenario, tensor);  // to 297 x 128 x 4 = 152,064
  EXPECT_EQ(rows_of(train, 0), (Cut{0, 38'016}));
  EXPECT_EQ(rows_of(train, 3), (Cut{114'048, 151'936}));
  const Layout generate = generate_layout(scenario, tensor);  // 2,374 x 64 already, over 8
  EXPECT_EQ(rows_of(generate, 7), (Cut{132'944, 151'936}));
}

TEST(Grid, generation_stages_hold_every_other_run_of_tp_ranks) {
  GenerateSpec generate{16, 2, 1, std::nullopt};
  generate.pp = 4;
  const Scenario scenario = scenario_of({16, 1, 1, 16, 1, 1, std::nullopt, std::nullopt}, generate);
  const Layout layout = generate_layout(scenario, dense_tensor(32, TensorParallel::rows), 3);
  EXPECT_EQ(layout.mesh, (Mesh{{2, 2}, {Rank{6}, Rank{7}, Rank{14}, Rank{15}}}));
}

TEST(Grid, generation_experts_span_engines_or_share_one_with_etp) {
  const TrainSpec train{16, 1, 1, 16, 1, 1, std::nullopt, std::nullopt};
  const Layout wide =
      generate_layout(scenario_of(train, {32, 8, 32, std::nullopt}), expert_tensor(TensorParallel::rows));
  EXPECT_EQ(rows_of(wide, 31), (Cut{248, 256}));
  const Layout both =
      generate_layout(scenario_of(train, {16, 8, 2, std::nullopt}), expert_tensor(TensorParallel::rows));
  EXPECT_EQ(rows_of(both, 5), (Cut{128, 256}));      // second half of the experts
  EXPECT_EQ(rows_of(both, 5, 1), (Cut{512, 1024}));  // second quarter of their rows
  const Layout uneven =
      generate_layout(scenario_of(train, {24, 24, 24, std::nullopt}), expert_tensor(TensorParallel::rows));
  EXPECT_EQ(rows_of(uneven, 15), (Cut{165, 176}));  // 256 over 24: the first 16 ranks have 11, the others 10
  EXPECT_EQ(rows_of(uneven, 16), (Cut{176, 186}));
}

TEST(Grid, spare_slots_repeat_the_first_experts_on_the_last_ranks) {
  GenerateSpec generate{8, 8, 8, std::nullopt};
  generate.redundant_experts = 32;  // 288 slots, 36 each
  Scenario scenario = scenario_of({16, 1, 1, 16, 1, 1, std::nullopt, std::nullopt}, generate);
  const Layout experts = generate_layout(scenario, expert_tensor(TensorParallel::rows));
  EXPECT_EQ(rows_of(experts, 7), (Cut{252, 256}));
  RefitTensor copies = expert_tensor(TensorParallel::rows);
  copies.copy_of = copies.shape.front();
  copies.shape.front() = 32;
  EXPECT_EQ(rows_of(generate_layout(scenario, copies), 7), (Cut{0, 32}));
  EXPECT_TRUE(generate_layout(scenario, copies).region(6).empty());
  EXPECT_EQ(rows_of(train_layout(scenario, copies), 1), (Cut{16, 32}));
  EXPECT_TRUE(train_layout(scenario, copies).region(2).empty());
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

}  // namespace
}  // namespace isthmus
