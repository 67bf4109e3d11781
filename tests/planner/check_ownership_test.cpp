#include "planner/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Ownership : public test::CheckFixture {};

TEST_F(Ownership, refuses_a_read_outside_the_source_shard) {
  refit({tensor("t", {4}, {2, 0, 0}, {1, 2})}, 3);
  send(0, 0, box({0}, {3}));
  send(1, 0, box({3}, {4}));
  expect_fault(
      Fault::not_held,
      "tensor t, element (2) on rank 0: step 0 reads it from the source shard, which is [0:2]; read it where "
      "it is held");
}

TEST_F(Ownership,
       refuses_a_plan_bound_to_other_ranks_than_its_own) {  // pitfall C1: the key of a cache is too short
  refit({tensor("t", {4, 2}, {2, 4, 0}, {2, 8, 0})}, 10);
  send(0, 0, box({0, 0}, {2, 2}));
  send(1, 1, box({2, 0}, {4, 2}));
  expect_proven();
  plan_.instances[0].source_base = {0};
  plan_.instances[0].target_base = {4};
  const Proof result = proof();
  EXPECT_FALSE(result.proven());
  EXPECT_THAT(result.violations.front().message,
              HasSubstr("element (0,0) on rank 0: step 0 reads it from the source "
                        "shard, which is not on this rank"));
}

TEST_F(Ownership, refuses_a_load_that_does_not_wait_for_its_data) {  // pitfall C3
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 2);
  send(0, 0, box({0}, {2})).to = Buffer::staging;
  send(0, 0, box({2}, {4})).to = Buffer::staging;
  Step load;
  load.kind = StepKind::load;
  load.from = Buffer::staging;
  load.source = load.target = LocalRank::target(0);
  load.region = box({0}, {4});
  add(load, {0});
  expect_fault(
      Fault::not_held,
      "tensor t, element (2) on rank 1: step 2 reads it from staging without waiting for step 1, which puts "
      "it there; add the dependency");
}

TEST_F(Ownership, refuses_a_read_of_staging_that_no_step_fills) {
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 2);
  send(0, 0, box({0}, {4})).from = Buffer::staging;
  expect_fault(
      Fault::not_held,
      "tensor t, element (0) on rank 0: step 0 reads it from staging, where no step puts it; bring it there "
      "first");
}

TEST_F(Ownership, refuses_a_gather_whose_members_lack_a_part) {
  refit({tensor("t", {6}, {3, 0, 0}, {1, 3})}, 4);
  plan_.patterns[0].members = {{LocalRank::source(0), LocalRank::source(1), LocalRank::target(0)}};
  Step gather;
  gather.kind = StepKind::all_gather;
  gather.to = Buffer::staging;
  gather.region = box({0}, {6});
  add(gather);
  send(0, 0, box({0}, {2}));
  send(1, 0, box({2}, {4}));
  send(2, 0, box({4}, {6}));
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(1));
  EXPECT_EQ(result.violations[0].message,
            "tensor t, element (4): step 0 gathers it, but no member's source shard has it; add a member "
            "that holds "
            "it");
}

TEST_F(Ownership, keeps_source_and_target_of_a_rank_on_both_sides_apart) {
  // Rank 1 is source of [2:4] and target of [0:2]: it may send on what it received only from its target
  // buffer.
  refit({tensor("t", {4}, {2, 0, 0}, {2, 1, 0})}, 3);
  send(0, 0, box({0}, {2}));
  send(1, 1, box({2}, {4}));
  expect_proven();
  plan_.patterns[0].steps[0].source = LocalRank::source(1);
  EXPECT_THAT(proof().violations.front().message,
              HasSubstr("element (0) on rank 1: step 0 reads it from the source shard, which is [2:4]"));
}

}  // namespace
}  // namespace isthmus
