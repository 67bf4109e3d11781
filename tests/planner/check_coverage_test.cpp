#include "planner/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Coverage : public test::CheckFixture {};

TEST_F(Coverage, refuses_an_empty_plan) {  // pitfall A4
  refit({tensor("t0", {2}, {1, 0}, {1, 1})}, 2);
  plan_ = {};
  expect_fault(Fault::tensor_missing,
               "plan covers 0 of 1 target tensors, 0 of 4 bytes; no instance carries tensor t0");
}

TEST_F(Coverage, refuses_an_instance_without_steps) {
  refit({tensor("t0", {2}, {1, 0}, {1, 1})}, 2);
  expect_fault(
      Fault::never_written,
      "tensor t0, element (0) on rank 1: written by no step; exactly one is needed for each element of the "
      "shard [0:2]");
}

TEST_F(Coverage, refuses_a_tensor_that_two_instances_carry) {
  refit({tensor("t0", {2}, {1, 0}, {1, 1})}, 2);
  send(0, 0, box({0}, {2}));
  plan_.instances.push_back(Instance(plan_.instances[0]));
  expect_fault(Fault::tensor_repeated, "tensor t0: carried by instances 0 and 1; exactly one is allowed");
}

TEST_F(Coverage, names_the_element_that_is_written_twice_and_both_steps) {
  refit({tensor("t0", {4, 2}, {1, 0}, {1, 5})}, 6);
  send(0, 0, box({0, 0}, {4, 2}));
  send(0, 0, box({3, 0}, {4, 1}));
  expect_fault(
      Fault::written_twice,
      "tensor t0, element (3,0) on rank 5: written twice, by steps 0 and 1; exactly once is allowed");
  EXPECT_THAT(proof().violations[0].element, ElementsAre(3, 0));
  EXPECT_THAT(proof().violations[0].steps, ElementsAre(0, 1));
}

TEST_F(Coverage, counts_how_often_every_replica_sends_the_same_rows) {  // pitfall A10
  refit({tensor("t", {8, 4}, {8, 0}, {2, 8, 0})}, 10);
  for (std::size_t source = 0; source < 8; ++source) send(source, 0, box({0, 0}, {4, 4}));
  send(0, 1, box({4, 0}, {8, 4}));
  expect_fault(
      Fault::written_twice,
      "tensor t, element (0,0) on rank 8: written 8 times, by steps 0, 1, 2, 3, 4, 5, 6 and 7; exactly once "
      "is allowed");
}

TEST_F(Coverage,
       names_both_sides_of_experts_under_wrong_indices) {  // pitfall A9: local index taken for a global one
  refit({tensor("experts", {4, 1, 1}, {2, 0, 0}, {1, 2})}, 3);
  send(0, 0, box({0, 0, 0}, {2, 1, 1}));
  send(0, 0, box({0, 0, 0}, {2, 1, 1}));
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(2));
  EXPECT_EQ(result.violations[0].fault, Fault::written_twice);
  EXPECT_EQ(result.violations[1].fault, Fault::never_written);
  EXPECT_THAT(result.violations[1].element, ElementsAre(2, 0, 0));
}

TEST_F(Coverage,
       refuses_the_shard_of_another_chunk_rule) {  // pitfall B3: made for balanced, the layout says ceil
  refit({tensor("t", {10}, {1, 0}, {4, 1, 0, ChunkRule::ceil})}, 5);
  const std::vector<std::int64_t> balanced{0, 3, 6, 8, 10};
  for (std::size_t i = 0; i < 4; ++i) send(0, i, box({balanced[i]}, {balanced[i + 1]}));
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(2));
  EXPECT_EQ(result.violations[0].message,
            "tensor t, element (8) on rank 3: written by no step; exactly one is needed for each element of "
            "the shard "
            "[6:9]");
  EXPECT_EQ(result.violations[1].message,
            "tensor t, element (8) on rank 4: written by step 3, but its target shard is [9:10]");
}

TEST_F(Coverage, refuses_a_write_to_a_rank_without_a_shard) {
  refit({tensor("t", {2}, {1, 0}, {1, 1})}, 3);
  send(0, 0, box({0}, {2}));
  send(0, 1, box({1}, {2}));
  expect_fault(
      Fault::outside_target,
      "tensor t, element (1) on rank 2: written by step 1, but this rank has no target shard of the tensor");
}

TEST_F(Coverage, counts_the_root_of_a_broadcast_as_not_written) {
  // Ranks 0-1 -> 0-1: root 0 keeps its own source shard, its target shard still needs a copy.
  refit({tensor("t", {2}, {1, 0}, {2, 0})}, 2);
  plan_.patterns[0].members = {{LocalRank::source(0), LocalRank::target(1)}};
  Step broadcast;
  broadcast.kind = StepKind::broadcast;
  broadcast.region = box({0}, {2});
  add(broadcast);
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(1));
  EXPECT_THAT(result.violations[0].message, HasSubstr("element (0) on rank 0: written by no step"));
  send(0, 0, box({0}, {2})).kind = StepKind::copy;
  expect_proven();
}

}  // namespace
}  // namespace isthmus
