#include "planner/policies/stage_streams.hpp"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

/// Groups of operations between the pairs of ranks, in order; every rank's operations per group are counted.
void expect_safe(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs, std::uint32_t first,
                 std::uint32_t most_groups) {
  SafeGroups groups(first);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> operations;  // by group and rank
  std::uint32_t most = 0, last = first;
  for (const auto& [a, b] : pairs) {
    const std::uint32_t group = groups.place(a, b);
    ASSERT_GE(group, first);
    last = std::max(last, group);
    most = std::max(most, ++operations[{group, a}]);
    if (a != b) most = std::max(most, ++operations[{group, b}]);
  }
  EXPECT_LE(most, safe_group_size);
  EXPECT_EQ(groups.end(), pairs.empty() ? first : last + 1);
  EXPECT_LE(groups.end() - first, most_groups);
}

TEST(SafeGroups, hold_no_more_operations_of_a_rank_than_are_safe) {
  // Rank 2 follows rank 0 into the second group long before its own first one is full.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs(safe_group_size, {0, 1});
  pairs.insert(pairs.end(), safe_group_size, {0, 2});
  pairs.insert(pairs.end(), safe_group_size, {2, 3});
  expect_safe(pairs, 5, 3);
  expect_safe(std::vector<std::pair<std::uint32_t, std::uint32_t>>(safe_group_size, {0, 1}), 0, 1);
  expect_safe(std::vector<std::pair<std::uint32_t, std::uint32_t>>(safe_group_size + 1, {4, 4}), 0, 2);
}

RC_GTEST_PROP(SafeGroups, hold_for_any_pairs, ()) {
  const std::uint32_t hub = *rc::gen::inRange(0U, 3U);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto other = *rc::gen::inRange(0U, 5U);
    pairs.insert(pairs.end(), *rc::gen::inRange<std::size_t>(0, 3000), {i % 2 == 0 ? hub : i % 5, other});
  }
  expect_safe(pairs, 0, static_cast<std::uint32_t>(pairs.size() / safe_group_size) + 2);
}

TEST(SafeGroups, are_none_where_nothing_is_placed) { EXPECT_EQ(SafeGroups(7).end(), 7U); }

void expect_pieces(const std::vector<std::int64_t>& shape, std::size_t count) {
  const Layout layout{shape, Dtype::bf16, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  const std::vector<Region> pieces = message_pieces(layout, whole(shape));
  EXPECT_EQ(pieces.size(), count);
  std::int64_t volume = 0;
  for (const Region& piece : pieces) {
    volume += piece.volume();
    EXPECT_LT(layout.bytes(piece).value, std::int64_t{1} << 32);
    for (const Region& other : pieces) {
      EXPECT_EQ(intersect(piece, other).empty(), &other != &piece);
    }
  }
  EXPECT_EQ(volume, whole(shape).volume());
}

TEST(MessagePieces, are_the_box_itself_below_4_GiB_and_cut_from_there_on) {
  expect_pieces({(std::int64_t{1} << 31) - 1}, 1);
  expect_pieces({std::int64_t{1} << 31}, 2);
  expect_pieces({256, 2048, 7168}, 2);
  expect_pieces({1, 1, std::int64_t{1} << 33},
                5);                              // 16 GiB are four pieces of 2^32 bytes, one too large each
  expect_pieces({3, std::int64_t{3} << 30}, 6);  // rows of 6 GiB: cut inside the row
  expect_pieces({1}, 1);
}

/// Three tensors of stages 0, 1, 2 between the same ranks.
Refit three_stages(int streams) {
  const test::Side source{2, 0, 0}, target{2, 2, 0};
  Refit refit =
      test::make_refit({{test::tensor("a", {4}, source, target), test::tensor("b", {4}, source, target),
                         test::tensor("c", {4}, source, target)},
                        4});
  refit.stages = 3;
  refit.settings.streams = streams;
  for (int stage = 0; stage < 3; ++stage) refit.tensors[to_size(stage)].stage = stage;
  return refit;
}

Pattern two_groups(const Geometry&, const RefitEntry&) {
  Pattern pattern;
  pattern.steps.resize(2);
  pattern.steps[1].group = 1;
  return pattern;
}

TEST(StageStreams, take_stages_in_turn_and_tensors_in_order) {
  const Plan plan = plan_on_stage_streams("any", three_stages(2), two_groups);
  ASSERT_EQ(plan.lanes.size(), 2U);
  for (const Lane& lane : plan.lanes) EXPECT_EQ(lane.window, 1U);
  EXPECT_EQ(plan.policy, "any");
  EXPECT_EQ(plan.patterns.size(), 1U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.instances[i].lane, LaneId{i % 2});
    EXPECT_EQ(plan.instances[i].group, 2 * i);
  }
}

TEST(StageStreams, are_at_least_one_and_no_more_than_stages) {
  EXPECT_EQ(plan_on_stage_streams("any", three_stages(0), two_groups).lanes.size(), 1U);
  EXPECT_EQ(plan_on_stage_streams("any", three_stages(8), two_groups).lanes.size(), 3U);
}

TEST(StageStreams, build_once_per_geometry_and_distance_of_sides_that_share_ranks) {
  const auto patterns = [](std::uint32_t first_target) {
    std::vector<TensorSpec> tensors;
    for (const std::uint32_t shift : {0U, 1U}) {
      tensors.push_back(test::tensor(shift == 0 ? "a" : "b", {4}, {2, 0, 0}, {2, first_target + shift, 0}));
    }
    return plan_on_stage_streams("any", test::make_refit({tensors, first_target + 3}), two_groups)
        .patterns.size();
  };
  EXPECT_EQ(patterns(2), 1U);
  EXPECT_EQ(patterns(0), 2U);
}

/// Two training ranks to two generation ranks: a bulk tensor, a misc one, a bulk one.
Refit hybrid_refit(int streams) {
  const test::Side source{2, 0, 0}, target{2, 2, 1};
  Refit refit = test::make_refit(
      {{test::tensor("a", {4, 4}, source, target), test::tensor("norm", {4, 4}, source, target),
        test::tensor("b", {4, 4}, source, target)},
       4});
  refit.train_ranks = refit.generate_ranks = 2;
  refit.settings.streams = streams;
  for (RefitEntry& entry : refit.tensors) entry.tensor.role = Role::bulk;
  refit.tensors[1].tensor.role = Role::misc;
  return refit;
}

TEST(Hybrid, sends_misc_tensors_in_packets_on_lanes_of_their_own_after_the_bulk) {
  for (const auto make : {plan_striped, plan_golden}) {
    const Refit refit = hybrid_refit(2);
    const Plan plan = std::get<Plan>(make(refit));
    EXPECT_TRUE(check(refit, plan).proven());
    EXPECT_TRUE(test::Twin(refit).run(plan).correct());
    ASSERT_EQ(plan.lanes.size(), 1U + to_size(refit.settings.buffers));
    EXPECT_EQ(plan.lanes[0].coalesce, false);
    EXPECT_EQ(plan.lanes[1].coalesce, true);
    ASSERT_EQ(plan.instances.size(), 3U);
    EXPECT_EQ(plan.instances.back().tensor, TensorId{1});
    EXPECT_EQ(plan.instances.back().lane, LaneId{1});
    EXPECT_EQ(plan.pattern(plan.instances.back()).steps.back().kind, StepKind::load);
  }
}

TEST(Hybrid, lets_no_rank_of_the_last_bulk_tensor_start_on_a_packet_before_it_has_the_bulk) {
  const Refit refit = hybrid_refit(2);
  const Plan plan = std::get<Plan>(plan_striped(refit));
  const Instance& last = plan.instances[1];
  const Pattern& pattern = plan.pattern(last);
  std::map<LocalRank, std::vector<std::uint32_t>> waits;
  for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
    const Step& step = pattern.steps[s];
    const bool is_wait = step.kind == StepKind::pack && step.region.volume() == 1;
    if (is_wait) waits[step.source].push_back(s);
  }
  ASSERT_EQ(waits.size(), 4U);  // both sides
  for (const auto& [rank, steps] : waits) {
    ASSERT_EQ(steps.size(), plan.lanes.size());
    for (std::uint32_t lane = 0; lane < steps.size(); ++lane) {
      const Step& wait = pattern.steps[steps[lane]];
      EXPECT_EQ(wait.lane, lane);
      EXPECT_LT(plan.group_of(last, steps[lane]), plan.instances[2].group);
      const auto begin = pattern.after.begin() + wait.after_begin,
                 end = pattern.after.begin() + wait.after_end;
      EXPECT_TRUE(lane == 0 || std::find(begin, end, steps[lane - 1]) != end);
      EXPECT_GT(end - begin, lane);  // and what brings the tensor
    }
  }
}

TEST(Hybrid, has_streams_alone_where_all_tensors_are_bulk_and_packets_alone_where_none_is) {
  Refit refit = hybrid_refit(2);
  refit.tensors[1].tensor.role = Role::bulk;
  EXPECT_EQ(std::get<Plan>(plan_striped(refit)).lanes.size(), 1U);
  for (RefitEntry& entry : refit.tensors) entry.tensor.role = Role::misc;
  const Plan packets = std::get<Plan>(plan_striped(refit));
  EXPECT_TRUE(check(refit, packets).proven());
  for (const Instance& instance : packets.instances) EXPECT_GE(instance.lane, LaneId{1});
  refit.train_ranks = 0;  // bare tensors have no misc path
  EXPECT_EQ(std::get<Plan>(plan_striped(refit)).lanes.size(), 1U);
}

}  // namespace
}  // namespace isthmus
