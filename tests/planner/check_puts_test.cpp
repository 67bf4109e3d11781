// Puts in flight between two ranks, as the smallest layout of pitfall D5 and against what the twin counts
// while it runs random plans. Puts into another NVLink domain stand in check_buffers_test.cpp.

#include "tests/support/check_fixture.hpp"

#include <gmock/gmock.h>

#include "tests/support/plan_builder.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;

class PutPitfalls : public test::CheckFixture {
 protected:
  /// 300 puts of an element each from rank 0 to rank 1, dealt to so many groups.
  void puts(std::uint32_t groups) {
    refit({tensor("w", {300}, {1, 0}, {1, 1})}, 2);
    plan_.patterns[0] = {};
    for (std::int64_t i = 0; i < 300; ++i) {
      Step& step = send(0, 0, box({i}, {i + 1}), static_cast<std::uint32_t>(i) % groups);
      step.kind = StepKind::put;
    }
  }

  Proof proof_of_executor() const {
    Limits limits;
    limits.puts_in_flight = 256;
    return proof(limits);
  }
};

TEST_F(PutPitfalls, D5_more_puts_in_flight_than_the_executor_allows) {
  puts(1);
  expect_proven();  // of an executor that does not count them
  const Proof refused = proof_of_executor();
  EXPECT_THAT(
      messages(refused),
      ::testing::ElementsAre("rank 0 has 300 puts in flight to rank 1; the executor allows 256, so spread "
                             "them over more groups or take a smaller window"));
  EXPECT_EQ(refused.violations[0].fault, Fault::too_many_puts);
  EXPECT_EQ(test::Twin(*refit_).run(plan_).largest_puts, 300U);
  plan_ = {};
  puts(2);
  EXPECT_TRUE(proof_of_executor().proven());
  EXPECT_EQ(test::Twin(*refit_).run(plan_).largest_puts, 150U);
}

TEST_F(PutPitfalls, D5_counts_the_groups_of_a_window_and_all_lanes) {
  puts(2);
  plan_.lanes[0].window = 2;
  EXPECT_EQ(proof_of_executor().violation_count, 1U);
  plan_.lanes[0].window = 1;
  for (std::size_t i = 0; i < 300; i += 2) plan_.patterns[0].steps[i].lane = 1;
  EXPECT_EQ(proof_of_executor().violation_count, 1U);
}

TEST_F(PutPitfalls, D5_counts_what_is_joined_once) {
  puts(1);
  plan_.lanes[0].coalesce = true;
  EXPECT_TRUE(proof_of_executor().proven());
}

TEST(PutsInFlight, are_never_fewer_than_those_of_an_execution) {
  int with_puts = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    const Plan plan = test::build_plan(refit, test::options_of(seed));
    const test::Twin twin(refit);
    std::size_t most = 0;
    for (std::uint64_t order = 0; order < 3; ++order)
      most = std::max(most, twin.run(plan, {order, test::TwinSchedule::nobody}).largest_puts);
    Limits limits;
    limits.puts_in_flight = plan.step_count();
    EXPECT_TRUE(check(refit, plan, limits).proven()) << seed;
    if (most == 0) continue;
    ++with_puts;
    limits.puts_in_flight = most - 1;
    const Proof proof = check(refit, plan, limits);
    ASSERT_FALSE(proof.proven()) << seed;
    EXPECT_EQ(proof.violations[0].fault, Fault::too_many_puts) << seed;
  }
  EXPECT_GT(with_puts, 20);
}

}  // namespace
}  // namespace isthmus
