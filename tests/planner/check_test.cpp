#include "planner/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/check_fixture.hpp"
#include "tests/support/plan_builder.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;
using ::testing::Each;
using ::testing::Field;
using ::testing::SizeIs;

class CheckTest : public test::CheckFixture {};

TEST_F(CheckTest, proves_a_send_for_each_overlap) {
  refit({tensor("t", {4, 4}, {2, 0, 0}, {2, 2, 1})}, 4);
  for (std::size_t source : {0U, 1U}) {
    for (std::size_t target : {0U, 1U}) {
      const auto row = static_cast<std::int64_t>(source) * 2, column = static_cast<std::int64_t>(target) * 2;
      send(source, target, box({row, column}, {row + 2, column + 2}));
    }
  }
  expect_proven();
  EXPECT_EQ(proof().steps_checked, 4U);
  EXPECT_EQ(proof().patterns_proven, 1U);
  EXPECT_EQ(proof().target_bytes, Bytes{32});
}

TEST_F(CheckTest, proves_equal_pattern_and_geometry_once_for_all_instances) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t i = 0; i < 50; ++i) {
    tensors.push_back(tensor("t" + std::to_string(i), {4}, {2, 2 * i, 0}, {2, 100, 0}));
  }
  refit(std::move(tensors), 102);
  send(0, 0, box({0}, {2}));
  send(1, 1, box({2}, {4}));
  for (Instance& instance : plan_.instances) instance.pattern = {0};
  for (std::uint32_t i = 0; i < 50; ++i) plan_.instances[i].group = i;
  expect_proven();
  EXPECT_EQ(proof().patterns_proven, 1U);
  EXPECT_EQ(proof().steps_checked, 100U);
}

TEST_F(CheckTest, proves_separately_where_the_two_sides_share_ranks_in_different_ways) {
  // Copies fit the first tensor only: there source rank v is target rank v.
  refit({tensor("a", {4}, {2, 0, 0}, {2, 0, 0}), tensor("b", {4}, {2, 0, 0}, {2, 1, 0})}, 3);
  for (std::size_t rank : {0U, 1U}) {
    const auto begin = static_cast<std::int64_t>(rank) * 2;
    send(rank, rank, box({begin}, {begin + 2})).kind = StepKind::copy;
  }
  plan_.instances[1].pattern = {0};
  const Proof result = proof();
  EXPECT_EQ(result.violation_count, 2U);
  EXPECT_EQ(result.violations.front().message,
            "tensor b: step 0 is a copy between two ranks; use a send, or one rank");
}

TEST_F(CheckTest, accepts_a_staged_read_whose_writer_is_named_through_another_step) {
  refit({tensor("t", {4}, {1, 0}, {2, 1})}, 3);
  send(0, 0, box({0}, {4})).to = Buffer::staging;
  Step relay;  // rank 1 -> rank 2, from staging to staging
  relay.from = relay.to = Buffer::staging;
  relay.source = LocalRank::target(0);
  relay.target = LocalRank::target(1);
  relay.region = box({0}, {4});
  add(relay, {0});
  for (std::size_t rank : {0U, 1U}) {
    Step load;
    load.kind = StepKind::load;
    load.from = Buffer::staging;
    load.source = load.target = LocalRank::target(rank);
    load.region = box({0}, {4});
    add(load, {1});
  }
  expect_proven();
}

TEST_F(CheckTest, accepts_a_relay_rank_of_neither_side) {
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 3);
  send(0, 1, box({0}, {4})).to = Buffer::staging;  // target offset 1 is rank 2
  Step relay;
  relay.from = Buffer::staging;
  relay.source = LocalRank::target(1);
  relay.target = LocalRank::target(0);
  relay.region = box({0}, {4});
  add(relay, {0});
  expect_proven();
}

TEST_F(CheckTest, refuses_to_read_from_a_relay_rank_what_was_not_staged_there) {
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 2);
  add_relay_ranks(*refit_);
  ASSERT_EQ(refit_->relay_ranks, 6U);
  send(0, 1, box({0}, {4})).to = Buffer::staging;
  Step relay;
  relay.from = Buffer::staging;
  relay.source = LocalRank::target(1);
  relay.target = LocalRank::target(0);
  relay.region = box({0}, {4});
  Step& read = add(relay, {0});
  expect_proven();
  read.from = Buffer::source;
  expect_fault(Fault::not_held,
               "tensor t, element (0) on rank 2: step 1 reads it from the source shard, which is not on this "
               "rank; read it where it is held");
  read.from = Buffer::target;
  expect_fault(
      Fault::not_held,
      "tensor t, element (0) on rank 2: step 1 reads it from target, where no step puts it; bring it "
      "there first");
}

TEST_F(CheckTest, accepts_two_groups_of_different_size_on_the_two_sides) {  // pitfall A12: PP4 TP2 -> PP2 TP4
  refit({tensor("t", {8}, {2, 0, 0}, {4, 4, 0})}, 8);
  for (std::size_t target = 0; target < 4; ++target) {
    const auto begin = static_cast<std::int64_t>(target) * 2;
    send(target / 2, target, box({begin}, {begin + 2}));
  }
  expect_proven();
}

TEST_F(CheckTest, says_whether_some_rank_stages_a_whole_sharded_tensor) {
  refit({tensor("t", {4}, {2, 0, 0}, {2, 2, 0})}, 4);
  plan_.patterns[0].members = {{LocalRank::source(0), LocalRank::source(1)}};
  send(0, 0, box({0}, {2}));
  send(1, 1, box({2}, {4}));
  EXPECT_FALSE(proof().full_tensor_materialised);
  Step gather;
  gather.kind = StepKind::all_gather;
  gather.to = Buffer::staging;
  gather.region = box({0}, {4});
  add(gather);
  EXPECT_TRUE(proof().full_tensor_materialised);
  expect_proven();
}

RC_GTEST_PROP(Check, proves_every_plan_of_the_naive_builder_and_the_twin_agrees, ()) {
  const test::RefitCase refit_case = *test::refit_cases();
  const Refit refit = test::make_refit(refit_case);
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
  const Plan plan = test::build_plan(refit, test::options_of(seed));
  const Proof proof = check(refit, plan);
  RC_LOG() << (proof.proven() ? "" : proof.violations.front().message);
  RC_ASSERT(proof.proven());
  RC_ASSERT(proof.steps_checked == plan.step_count());
  const test::Twin twin(refit);
  for (std::uint64_t schedule = 0; schedule < 3; ++schedule) RC_ASSERT(twin.run(plan, {schedule}).correct());
}

TEST_F(CheckTest, lists_the_first_violations_and_counts_all) {
  refit({tensor("t", {64}, {1, 0}, {64, 1, 0})}, 65);
  const Proof result = proof();
  EXPECT_EQ(result.violation_count, 64U);
  EXPECT_THAT(result.violations, SizeIs(20));
  EXPECT_THAT(result.violations, Each(Field(&Violation::fault, Fault::never_written)));
}

TEST(Fault, has_a_name_each) {
  EXPECT_EQ(to_string(Fault::malformed), "malformed");
  EXPECT_EQ(to_string(Fault::group_too_large), "group_too_large");
}

}  // namespace
}  // namespace isthmus
