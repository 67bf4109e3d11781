#include "planner/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class OrderOfGroups : public test::CheckFixture {};

TEST_F(OrderOfGroups, refuses_two_tensors_whose_groups_and_dependencies_cross) {  // pitfall E5
  // Each tensor goes 0 -> 1 -> 2. On lane main rank 1 is to receive b before a, on lane side to pass a on
  // before b.
  refit({tensor("a", {2}, {1, 0}, {2, 1}), tensor("b", {2}, {1, 0}, {2, 1})}, 3);
  for (std::size_t i : {0U, 1U}) {
    send(0, 0, box({0}, {2}), 1 - static_cast<std::uint32_t>(i), i);
    Step relay;
    relay.from = Buffer::target;
    relay.source = LocalRank::target(0);
    relay.target = LocalRank::target(1);
    relay.region = box({0}, {2});
    relay.group = static_cast<std::uint32_t>(i);
    relay.lane = 1;
    add(relay, {0}, i);
  }
  expect_proven();  // different lanes: b only waits longer
  for (Pattern& pattern : plan_.patterns) pattern.steps[1].lane = 0;
  plan_.patterns[0].steps[1].group = 0;
  plan_.patterns[0].steps[0].group = 1;
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(1));
  EXPECT_EQ(result.violations[0].fault, Fault::wait_cycle);
  EXPECT_THAT(result.violations[0].message, AllOf(HasSubstr("tensor a step 0 (lane main, group 1)"),
                                                  HasSubstr("tensor a step 1 (lane main, group 0)")));
  EXPECT_TRUE(test::Twin(*refit_).run(plan_).stalled);
  plan_.lanes[0].window = 2;  // both groups in flight: no wait any more
  expect_proven();
}

TEST_F(OrderOfGroups, refuses_a_wait_cycle_that_only_coalescing_makes) {
  // Three chains over ranks 1, 2, 3 that begin at different ranks; joined, each pair of ranks waits for the
  // one before.
  refit(
      {tensor("a", {2}, {1, 0}, {3, 1}), tensor("b", {2}, {1, 0}, {3, 1}), tensor("c", {2}, {1, 0}, {3, 1})},
      4);
  for (std::size_t i : {0U, 1U, 2U}) {
    send(0, i, box({0}, {2}), 0, i);
    for (std::uint32_t link : {0U, 1U}) {
      Step relay;
      relay.from = Buffer::target;
      relay.source = LocalRank::target((i + link) % 3);
      relay.target = LocalRank::target((i + link + 1) % 3);
      relay.region = box({0}, {2});
      relay.lane = 1;
      add(relay, {link}, i);
    }
  }
  expect_proven();
  plan_.lanes[1].coalesce = true;
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(1));
  EXPECT_EQ(result.violations[0].fault, Fault::wait_cycle);
  EXPECT_TRUE(test::Twin(*refit_).run(plan_).stalled);
}

TEST_F(OrderOfGroups, refuses_a_wait_cycle_between_two_coalescing_lanes) {
  // All in group 0. Tensor a goes over lane main first, tensor b over lane side first.
  refit({tensor("a", {2}, {1, 0}, {2, 1}), tensor("b", {2}, {1, 0}, {2, 1})}, 3);
  for (std::size_t i : {0U, 1U}) {
    Step second = send(0, i, box({0}, {2}), 0, i);
    plan_.patterns[i].steps[0].lane = static_cast<std::uint16_t>(i);
    second.target = LocalRank::target(1 - i);
    second.lane = static_cast<std::uint16_t>(1 - i);
    add(second, {0}, i);
  }
  expect_proven();
  for (Lane& lane : plan_.lanes) lane.coalesce = true;
  expect_fault(
      Fault::wait_cycle,
      "wait cycle - tensor a step 0 (lane main, group 0), tensor a step 1 (lane side, group 0) - each waits "
      "for the one before it and the first for the last, by `after` or by the order of groups on a rank; "
      "what "
      "is waited for needs the lower group");
}

TEST_F(OrderOfGroups, accepts_lanes_with_group_numbers_of_their_own) {
  refit({tensor("t", {2}, {1, 0}, {2, 1})}, 3);
  send(0, 0, box({0}, {2}), 500);
  Step relay;
  relay.from = Buffer::target;
  relay.source = LocalRank::target(0);
  relay.target = LocalRank::target(1);
  relay.region = box({0}, {2});
  relay.lane = 1;
  add(relay, {0});
  expect_proven();
}

TEST_F(OrderOfGroups, names_a_group_with_more_operations_than_the_executor_allows) {  // pitfall D1
  refit({tensor("t", {24'000}, {1, 0}, {1, 1})}, 2);
  for (std::int64_t i = 0; i < 24'000; ++i) send(0, 0, box({i}, {i + 1}));
  const Proof result = proof();
  EXPECT_THAT(
      messages(result),
      ElementsAre("group 0 of lane main on rank 0 - has 24000 operations - at most 8192 are allowed; use 3 "
                  "groups",
                  "group 0 of lane main on rank 1 - has 24000 operations - at most 8192 are allowed; use 3 "
                  "groups"));
  plan_.lanes[0].coalesce = true;  // then it is one operation
  EXPECT_TRUE(proof().proven());
  plan_.lanes[0].coalesce = false;
  std::vector<Step>& steps = plan_.patterns[0].steps;
  for (std::uint32_t i = 0; i < steps.size(); ++i) steps[i].group = i / 8192;
  EXPECT_TRUE(proof().proven());
}

TEST_F(OrderOfGroups, counts_operations_of_a_group_over_all_instances) {
  refit({tensor("a", {2}, {1, 0}, {2, 1}), tensor("b", {2}, {1, 0}, {2, 1})}, 3);
  for (std::size_t i : {0U, 1U}) {
    for (std::size_t target : {0U, 1U}) send(0, target, box({0}, {2}), 0, i);
  }
  Limits limits;
  limits.operations_per_group = 4;
  EXPECT_TRUE(proof(limits).proven());
  limits.operations_per_group = 3;
  EXPECT_THAT(
      messages(proof(limits)),
      ElementsAre("group 0 of lane main on rank 0 - has 4 operations - at most 3 are allowed; use 2 groups"));
  EXPECT_EQ(test::Twin(*refit_).run(plan_).largest_group, 4U);
}

TEST_F(OrderOfGroups, counts_instances_alike_in_all_once_where_they_coalesce) {
  refit({tensor("a", {2}, {1, 0}, {2, 1}), tensor("b", {2}, {1, 0}, {2, 1})}, 3);
  for (std::size_t target : {0U, 1U}) send(0, target, box({0}, {2}), 0, 0);
  plan_.schedule = {0, 0};
  for (Instance& instance : plan_.instances) {
    instance.pattern = PatternId{0};
    instance.schedule = 0;
  }
  Limits limits;
  limits.operations_per_group = 2;
  EXPECT_THAT(
      messages(proof(limits)),
      ElementsAre("group 0 of lane main on rank 0 - has 4 operations - at most 2 are allowed; use 2 groups"));
  plan_.lanes[0].coalesce = true;
  EXPECT_TRUE(proof(limits).proven());
  limits.operations_per_group = 1;
  EXPECT_THAT(
      messages(proof(limits)),
      ElementsAre("group 0 of lane main on rank 0 - has 2 operations - at most 1 are allowed; use 2 groups"));
}

TEST_F(OrderOfGroups, accepts_a_large_group_that_is_large_on_no_rank) {
  refit({tensor("t", {4}, {4, 0, 0}, {4, 4, 0})}, 8);
  for (std::int64_t i = 0; i < 4; ++i) send(to_size(i), to_size(i), box({i}, {i + 1}));
  Limits limits;
  limits.operations_per_group = 1;
  EXPECT_TRUE(proof(limits).proven());
  // The same group, but one rank sends two of its four messages.
  refit({tensor("u", {4}, {4, 0}, {4, 4, 0})}, 8);
  for (std::int64_t i = 0; i < 4; ++i) send(i == 1 ? 0 : to_size(i), to_size(i), box({i}, {i + 1}), 0, 1);
  plan_.instances.erase(plan_.instances.begin());
  plan_.instances[0].pattern = PatternId{1};
  EXPECT_THAT(
      messages(proof(limits)),
      ElementsAre("group 0 of lane main on rank 0 - has 2 operations - at most 1 are allowed; use 2 groups"));
}

}  // namespace
}  // namespace isthmus
