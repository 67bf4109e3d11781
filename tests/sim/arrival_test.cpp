// After complete runs of random refits everything has arrived, by every policy: tests/sim/run_test.cpp.

#include "sim/arrival.hpp"

#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::sim {
namespace {

/// Two tensors of 100 bytes from rank 0 to ranks 1 and 2, whole each.
Refit two_tensors() {
  TensorSpec spec;
  spec.name = "first";
  spec.source = {{100}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{100}, Dtype::u8, contiguous_mesh({2}, Rank{1}), {{}}, ChunkRule::even};
  TensorSpec other = spec;
  other.name = "second";
  return isthmus::test::make_refit({{spec, other}, 3});
}

Outcome failed_after(std::uint32_t operation, std::int64_t moved) {
  Outcome outcome;
  outcome.failed.push_back({operation, {}, {moved}});
  return outcome;
}

TEST(Arrival, of_a_message_that_failed_counts_what_had_moved) {
  const Refit refit = two_tensors();
  const Plan plan = std::get<Plan>(plan_p2p(refit));
  const Operations operations = expand(refit, plan);
  std::uint32_t last = 0;  // the last message to rank 1
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    if (operations.list[i].target == Rank{1}) last = i;
  }
  const std::vector<RankArrival> found = arrivals(refit, plan, operations, failed_after(last, 40));
  ASSERT_EQ(found.size(), 2U);
  const std::int64_t whole = operations.list[last].bytes.value;  // 100, or 200 where both travel together
  EXPECT_EQ(found[0].arrived.value, 200 - whole + 40);
  EXPECT_EQ(found[0].serves, Serves::neither);
  EXPECT_EQ(found[0].partial, 1U);
  EXPECT_EQ(found[0].complete + found[0].missing, 1U);
  EXPECT_EQ(found[1].serves, Serves::new_weights);
  EXPECT_TRUE(found[1].incomplete.empty());
}

TEST(Arrival, in_staging_leaves_old_weights_in_service) {
  const Refit refit = two_tensors();
  const Plan plan = std::get<Plan>(plan_gather_broadcast(refit));
  const Operations operations = expand(refit, plan);
  Outcome outcome;  // all was broadcast into staging, nothing was loaded
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    if (!operations.list[i].staged_target) outcome.never_started.push_back(i);
  }
  ASSERT_LT(outcome.never_started.size(), operations.list.size());
  for (const RankArrival& rank : arrivals(refit, plan, operations, outcome)) {
    EXPECT_EQ(rank.arrived.value, 0);
    EXPECT_EQ(rank.missing, 2U);
    EXPECT_EQ(rank.serves, Serves::old_weights);
  }
}

}  // namespace
}  // namespace isthmus::sim
