#include "planner/operations.hpp"

#include <map>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus {
namespace {

RC_GTEST_PROP(Operations, carry_every_step_once_and_all_its_bytes, (std::uint64_t seed)) {
  const auto refit_case = *test::refit_cases();
  const Refit refit = test::make_refit(refit_case);
  const Plan plan = test::build_plan(refit, test::options_of(seed));
  std::int64_t steps = 0, bytes = 0;
  for (const Instance& instance : plan.instances) {
    for (const Step& step : plan.pattern(instance).steps) {
      ++steps;
      bytes += refit.geometry(instance.tensor).source.bytes(step.region).value;
    }
  }
  std::int64_t pieces = 0, moved = 0;
  const Operations operations = expand(refit, plan);
  for (const Operation& operation : operations.list) {
    pieces += operation.pieces;
    moved += operation.bytes.value;
  }
  RC_ASSERT(pieces == steps);
  RC_ASSERT(moved == bytes);
}

/// What steps of a coalescing lane must share, in the words of the plan.
using JoinedBy = std::tuple<std::uint32_t, std::uint32_t, StepKind, Buffer, Buffer, std::vector<Rank>>;

JoinedBy joined_by(const Plan& plan, const Instance& instance, std::size_t index) {
  const Pattern& pattern = plan.pattern(instance);
  const Step& step = pattern.steps[index];
  std::vector<Rank> ranks;  // source and target; or root, and members
  if (step.kind != StepKind::all_gather) ranks.push_back(global_rank(instance, step.source));
  if (!is_collective(step.kind)) ranks.push_back(global_rank(instance, step.target));
  if (is_collective(step.kind)) {
    for (const LocalRank rank : pattern.members[step.members]) ranks.push_back(global_rank(instance, rank));
  }
  const std::uint32_t lane = std::uint32_t{instance.lane.value} + step.lane;
  return {lane, plan.group_of(instance, index), step.kind, step.from, step.to, std::move(ranks)};
}

RC_GTEST_PROP(Operations, join_exactly_the_steps_that_share_lane_group_kind_buffers_and_ranks,
              (std::uint64_t seed)) {
  const Refit refit = test::make_refit(*test::refit_cases());
  Plan plan = test::build_plan(refit, test::options_of(seed));
  for (Instance& instance : plan.instances) instance.group %= 2;  // so that much is joined
  for (std::size_t lane = 0; lane < plan.lanes.size(); ++lane) plan.lanes[lane].coalesce = lane % 3 != 2;
  const Operations operations = expand(refit, plan);
  std::map<JoinedBy, std::uint32_t> known;
  std::uint32_t next = 0;
  std::size_t at = 0;
  for (const Instance& instance : plan.instances) {
    for (std::size_t i = 0; i < plan.pattern(instance).steps.size(); ++i) {
      const JoinedBy key = joined_by(plan, instance, i);
      std::uint32_t expected = next;
      if (plan.lanes[std::get<0>(key)].coalesce) expected = known.try_emplace(key, next).first->second;
      RC_ASSERT(operations.of_step[at] == expected);
      if (expected == next) ++next;
      ++at;
    }
  }
  RC_ASSERT(operations.list.size() == next);
}

TEST(Operations, join_what_a_coalescing_lane_moves_between_the_same_ranks_in_one_group) {
  TensorSpec spec;
  spec.name = "a";
  spec.source = {{4, 4}, Dtype::bf16, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{4, 4}, Dtype::bf16, contiguous_mesh({1}, Rank{1}), {{}}, ChunkRule::even};
  TensorSpec other = spec;
  other.name = "b";
  const Refit refit = test::make_refit({{spec, other}, 2});
  Plan plan = std::get<Plan>(plan_p2p(refit));
  for (Instance& instance : plan.instances) instance.group = 0;
  EXPECT_EQ(expand(refit, plan).list.size(), 2U);
  plan.lanes[0].coalesce = true;
  const Operations joined = expand(refit, plan);
  ASSERT_EQ(joined.list.size(), 1U);
  EXPECT_EQ(joined.list[0].pieces, 2U);
  EXPECT_EQ(joined.list[0].bytes.value, 64);
}

}  // namespace
}  // namespace isthmus
