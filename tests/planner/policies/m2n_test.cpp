#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/m2n_limits.hpp"
#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/m2n_oracle.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

Layout layout(const std::vector<std::int64_t>& shape, std::int64_t replicas, std::int64_t shards,
              int dimension, std::int64_t first) {
  return {shape,
          Dtype::bf16,
          contiguous_mesh({replicas, shards}, Rank{static_cast<std::uint32_t>(first)}),
          {Placement{}, Placement{dimension}},
          ChunkRule::even};
}

PlanResult plan_of(const Refit& refit, M2nBalance balance) {
  return balance == M2nBalance::uniform ? plan_m2n_uniform(refit) : plan_m2n_node_aware(refit);
}

// ------------------------------------------------------------------ receive imbalance

/// One row of the published table: source shards and replicas, the same of the target, its first rank.
struct Row {
  std::string name;
  std::int64_t ns, source_replicas, nd, target_replicas, start, domain;
  bool same_dimension;
  M2nBalance balance;
  double copies;
  std::size_t receivers;
  double ratio;
};

const M2nBalance uniform = M2nBalance::uniform, node_aware = M2nBalance::node_aware;

std::vector<Row> published_rows() {
  return {
      {"Qwen3-32B H100, U", 4, 2, 4, 8, 8, 8, true, uniform, 4, 16, 2.0},
      {"Qwen3-32B H100, N", 4, 2, 4, 8, 8, 8, true, node_aware, 4, 16, 2.0},
      {"Qwen3-32B GB200, U", 2, 2, 1, 16, 4, 72, true, uniform, 2, 4, 8.0},
      {"Qwen3-32B GB200, N", 2, 2, 1, 16, 4, 72, true, node_aware, 1, 2, 8.0},
      {"DSV3 experts EP16 DP2, U", 16, 2, 8, 16, 64, 64, false, uniform, 2, 128, 1.0},
      {"DSV3 experts EP16 DP2, N", 16, 2, 8, 16, 64, 64, false, node_aware, 2, 128, 1.0},
      {"DSV3 non-expert, U", 1, 32, 8, 16, 64, 64, true, uniform, 16, 128, 8.0},
      {"DSV3 non-expert, N", 1, 32, 8, 16, 64, 64, true, node_aware, 2, 16, 8.0},
      {"DSV3 experts EP16 DP1, U", 16, 1, 8, 16, 16, 64, false, uniform, 3, 112, 6.5},
      {"DSV3 experts EP16 DP1, N", 16, 1, 8, 16, 16, 64, false, node_aware, 3, 112, 6.5},
      {"start 8", 16, 1, 8, 16, 8, 64, false, node_aware, 3, 120, 8.0},
      {"start 24", 16, 1, 8, 16, 24, 64, false, node_aware, 3, 104, 4.5},
      {"start 32", 16, 1, 8, 16, 32, 64, false, node_aware, 3, 96, 2.0},
      {"start 48", 16, 1, 8, 16, 48, 64, false, node_aware, 3, 48, 4.0},
      {"start 56", 16, 1, 8, 16, 56, 64, false, node_aware, 3, 24, 8.0},
  };
}

/// The sources stand before the targets where they have room there, else behind them.
test::M2nOracle record_of(const Row& row) {
  const std::int64_t sources = row.ns * row.source_replicas, targets = row.nd * row.target_replicas;
  const std::int64_t source_start = sources <= row.start ? 0 : row.start + targets;
  test::M2nOracle record;
  record.tensor.name = row.name;
  const std::vector<std::int64_t> shape{256, 256};
  record.tensor.source = layout(shape, row.source_replicas, row.ns, 0, source_start);
  record.tensor.target = layout(shape, row.target_replicas, row.nd, row.same_dimension ? 0 : 1, row.start);
  record.domain_size = row.domain;
  // Idle ranks fill the last domain, so that M2N sees domains of the row's size.
  const std::int64_t last = std::max(source_start + sources, row.start + targets);
  record.ranks = (last + row.domain - 1) / row.domain * row.domain;
  record.choice = {row.balance, {M2nPlan::ring, M2nSplit::off}};
  return record;
}

TEST(M2nPolicies, receive_as_unevenly_as_the_published_table_says) {
  for (const Row& row : published_rows()) {
    SCOPED_TRACE(row.name);
    const test::M2nOracle record = record_of(row);
    const Refit refit = test::m2n_refit(record.tensor, record.ranks, row.domain, record.choice.spec);
    const Plan plan = std::get<Plan>(plan_of(refit, row.balance));
    const test::M2nPicture picture = test::picture_of(refit, plan, record);
    std::int64_t most = 0;
    std::size_t receivers = 0;
    for (const auto& [rank, bytes] : picture.received) {
      most = std::max(most, bytes.at(0));
      if (bytes.at(0) > 0) ++receivers;
    }
    const std::int64_t sharing = std::min(row.domain, row.nd * row.target_replicas);
    const double ratio = static_cast<double>(most * sharing) / static_cast<double>(refit.payload().value);
    EXPECT_DOUBLE_EQ(ratio, row.ratio);
    EXPECT_EQ(receivers, row.receivers);
    EXPECT_DOUBLE_EQ(picture.network_copies, row.copies);
  }
}

// ------------------------------------------------------------------ correctness

template <class T>
T one_of(std::vector<T> choices) {
  return *rc::gen::elementOf(std::move(choices));
}

struct AcceptedCase {
  std::vector<TensorSpec> tensors;
  std::int64_t ranks = 0, domain = 1;
  M2nSpec spec;
};

/// A side of shards x replicas, either of them the inner mesh axis.
Layout some_side(const std::vector<std::int64_t>& shape, std::int64_t first) {
  const int dimension = *rc::gen::inRange(0, static_cast<int>(shape.size()));
  Layout side =
      layout(shape, *rc::gen::inRange(1, 7), one_of<std::int64_t>({1, 2, 3, 4, 6}), dimension, first);
  if (*rc::gen::inRange(0, 3) == 0) {
    std::swap(side.mesh.shape[0], side.mesh.shape[1]);
    std::swap(side.placements[0], side.placements[1]);
  }
  if (*rc::gen::inRange(0, 6) == 0) side.placements = {Placement{}, Placement{}};
  return side;
}

/// Layouts that M2N serves: shards of 12 or 24 rows or columns, sides in either order, with or without a gap.
AcceptedCase accepted_case() {
  AcceptedCase result;
  for (int t = *rc::gen::inRange(1, 3); t > 0; --t) {
    TensorSpec tensor;
    tensor.name = fmt::format("t{}", t);
    std::vector<std::int64_t> shape{12, 24};
    if (*rc::gen::inRange(0, 3) == 0) shape.insert(shape.begin(), 12);
    const std::int64_t start = *rc::gen::inRange(0, 5), gap = *rc::gen::inRange(0, 3);
    tensor.source = some_side(shape, start);
    const auto past = start + static_cast<std::int64_t>(tensor.source.mesh.size()) + gap;
    tensor.target = some_side(shape, past);
    result.ranks = std::max(result.ranks, past + static_cast<std::int64_t>(tensor.target.mesh.size()));
    if (*rc::gen::arbitrary<bool>()) std::swap(tensor.source, tensor.target);
    result.tensors.push_back(tensor);
  }
  result.domain = one_of<std::int64_t>({1, 2, 4, 5, 8, 64});
  result.spec.plan = *rc::gen::inRange(0, 4) == 0 ? M2nPlan::direct : M2nPlan::ring;
  result.spec.split = one_of<M2nSplit>({M2nSplit::automatic, M2nSplit::on, M2nSplit::off});
  return result;
}

Refit refit_of(const AcceptedCase& accepted) {
  Refit refit = test::m2n_refit(accepted.tensors.front(), accepted.ranks, accepted.domain, accepted.spec);
  for (std::size_t t = 1; t < accepted.tensors.size(); ++t) {
    const Refit other = test::m2n_refit(accepted.tensors[t], accepted.ranks, accepted.domain, accepted.spec);
    refit.tensors.push_back(other.tensors.front());
    refit.tensors.back().geometry = static_cast<std::uint32_t>(t);
    refit.geometries.push_back(other.geometries.front());
  }
  return refit;
}

RC_GTEST_PROP(M2nPolicies, write_each_target_element_exactly_once, ()) {
  const Refit refit = refit_of(accepted_case());
  for (const M2nBalance balance : {M2nBalance::uniform, M2nBalance::node_aware}) {
    const PlanResult result = plan_of(refit, balance);
    const bool direct = refit.settings.m2n.plan == M2nPlan::direct;
    if (const auto* refused = std::get_if<Refused>(&result)) {
      if (!direct) RC_FAIL(refused->reason);
      continue;
    }
    const Plan& plan = std::get<Plan>(result);
    const Proof proof = check(refit, plan);
    if (!proof.proven()) RC_FAIL(proof.violations.front().message);
    const test::Twin twin(refit);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const test::TwinResult end = twin.run(plan, {seed, test::TwinSchedule::nobody});
      if (!end.correct()) RC_FAIL(end.first_fault);
    }
  }
}

// ------------------------------------------------------------------ what is refused

std::string refusal_of(const Refit& refit) {
  const PlanResult result = plan_m2n_node_aware(refit);
  return std::holds_alternative<Plan>(result) ? "accepted" : std::get<Refused>(result).reason;
}

Refit pair_of(std::int64_t source_shards, std::int64_t target_shards, int target_dimension) {
  TensorSpec tensor;
  tensor.name = "w";
  tensor.source = layout({64, 64}, 1, source_shards, 0, 0);
  tensor.target = layout({64, 64}, 1, target_shards, target_dimension, source_shards);
  return test::m2n_refit(tensor, source_shards + target_shards, 8, {});
}

TEST(M2nPolicies, refuse_what_m2n_rejects_with_names_and_numbers) {
  EXPECT_EQ(refusal_of(pair_of(32, 2, 1)),
            "tensor w: source: target shard 0 meets 32 source shards, M2N allows 16; M2N takes at most 16 "
            "source shards that meet one target shard");
  EXPECT_EQ(refusal_of(pair_of(16, 2, 1)), "accepted");
}

TEST(M2nPolicies, refuse_unequal_shards_which_m2n_would_move_wrongly) {
  Refit refit = pair_of(2, 2, 0);
  EXPECT_EQ(refusal_of(refit), "accepted");
  for (Layout* side : {&refit.geometries[0].source, &refit.geometries[0].target}) side->shape = {63, 64};
  refit.geometries[0].source.chunk_rule = refit.geometries[0].target.chunk_rule = ChunkRule::ceil;
  EXPECT_EQ(refusal_of(refit).substr(0, 41), "tensor w: source: shards of different siz");
}

// ------------------------------------------------------------------ order and memory

TEST(M2nPolicies, inject_before_they_replicate_on_split_communicators) {
  TensorSpec tensor;
  tensor.name = "w";
  tensor.source = layout({64, 64}, 1, 4, 0, 0);
  tensor.target = layout({64, 64}, 8, 4, 0, 8);
  for (const M2nSplit split : {M2nSplit::on, M2nSplit::off}) {
    const Refit refit = test::m2n_refit(tensor, 40, 8, {M2nPlan::ring, split});
    const Plan plan = std::get<Plan>(plan_m2n_node_aware(refit));
    std::uint32_t last_injection = 0, first_forward = 0xFFFFFFFF;
    for (const Step& step : plan.patterns[0].steps) {
      if (step.kind != StepKind::send && step.kind != StepKind::put) continue;
      const bool forward = (step.source.value & LocalRank::target_side) != 0;
      if (forward) first_forward = std::min(first_forward, step.group);
      if (!forward) last_injection = std::max(last_injection, step.group);
    }
    EXPECT_EQ(last_injection < first_forward, split == M2nSplit::on);
  }
}

TEST(M2nPolicies, reshard_bulk_tensors_and_broadcast_the_rest_after_them) {
  const std::filesystem::path file = project_folder() / "scenarios/qwen3-32b-h100.yaml";
  for (const char* stages : {"4", "1"}) {
    const Refit refit = resolve(read_scenario(file, {{"train.pp", stages}}));
    const Plan plan = std::get<Plan>(plan_m2n_node_aware(refit));
    ASSERT_TRUE(check(refit, plan).proven());
    std::vector<std::map<std::uint32_t, std::uint32_t>> last_bulk(2);  // by lane, by rank: group
    for (const Instance& instance : plan.instances) {
      const bool bulk = refit.tensors[instance.tensor.index()].tensor.role == Role::bulk;
      EXPECT_TRUE(bulk || instance.buffer == Instance::own_memory);
      for (std::size_t s = 0; s < plan.pattern(instance).steps.size(); ++s) {
        const Step& step = plan.pattern(instance).steps[s];
        const bool packed = is_collective(step.kind) || step.kind == StepKind::load;
        EXPECT_EQ(packed, !bulk);
        std::uint32_t& last =
            last_bulk.at(instance.lane.value + step.lane)[global_rank(instance, step.target).value];
        const std::uint32_t group = plan.group_of(instance, s);
        if (bulk) last = std::max(last, group);
        EXPECT_TRUE(bulk || step.kind != StepKind::load || group > last);
      }
    }
    // Each generation rank ends its bulk on both lanes, so that neither lane lets it start on packets early.
    for (const auto& by_rank : last_bulk)
      for (std::uint32_t rank = 32; rank < 64; ++rank) EXPECT_GT(by_rank.at(rank), 0U) << stages;
  }
}

}  // namespace
}  // namespace isthmus
