#include "planner/operations.hpp"

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
