// Faults that really happened and that only a plan can show, each as its smallest layout, and the same layout
// without the fault. Those of coverage, ownership and order stand in check_*_test.cpp; docs/validate.md lists
// all classes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/bound.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;
using ::testing::SizeIs;

class PlanPitfalls : public test::CheckFixture {};

const std::string five_slots = R"(tensor: {name: experts, shape: [4, 1, 1], dtype: bf16}
source: {mesh: [1], first_rank: 0, placements: [replicated]}
target: {mesh: [1], first_rank: 1, placements: [replicated], slots: [0, 1, 2, 3, 0]}
fabric: {preset: dgx-h100, hosts: 1}
)";

TEST_F(PlanPitfalls, A5_names_the_exported_tensor_that_is_not_planned) {
  const std::string bias = "model.layers.0.mlp.gate.e_score_correction_bias";
  refit({tensor("model.layers.0.mlp.gate.weight", {2}, {1, 0}, {1, 1}), tensor(bias, {2}, {1, 0}, {1, 1})},
        2);
  send(0, 0, box({0}, {2}), 0, 0);
  send(0, 0, box({0}, {2}), 1, 1);
  expect_proven();
  const Instance planned = plan_.instances[1];
  plan_.instances.pop_back();
  expect_fault(Fault::tensor_missing,
               "plan covers 1 of 2 target tensors, 4 of 8 bytes; no instance carries tensor " + bias);
  plan_.instances.push_back(planned);
  plan_.instances.push_back(planned);
  plan_.instances.back().tensor = {2};  // the reverse: planned, not exported
  EXPECT_THAT(messages(proof()), ::testing::ElementsAre("instance 2 names tensor 2; there are 2"));
}

TEST_F(PlanPitfalls, A8_a_plan_that_knows_only_the_logical_experts_leaves_a_slot_unwritten) {
  refit_.emplace(resolve(parsed(five_slots)));
  plan_.lanes = {{"main", 1, false}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    plan_.patterns.emplace_back();
    plan_.instances.push_back({{i}, {i}, Rank{0}, Rank{1}, {0}, i});
  }
  send(0, 0, box({0, 0, 0}, {4, 1, 1}), 0, 0);
  send(0, 0, box({0, 0, 0}, {1, 1, 1}), 0, 1);
  expect_proven();
  plan_.instances.pop_back();
  expect_fault(
      Fault::tensor_missing,
      "plan covers 1 of 2 target tensors, 8 of 10 bytes; no instance carries tensor experts (slot 4, "
      "copy of expert 0)");
}

TEST_F(PlanPitfalls, A10_policies_send_each_shard_once_whatever_the_replicas) {
  refit({tensor("t", {8, 4}, {8, 0}, {2, 8, 0})}, 10);
  const PlanResult result = plan_p2p(*refit_);
  ASSERT_TRUE(std::holds_alternative<Plan>(result));
  EXPECT_EQ(std::get<Plan>(result).step_count(), 2U);
  EXPECT_TRUE(check(*refit_, std::get<Plan>(result)).proven());
}

TEST_F(PlanPitfalls, C1_equal_tensors_at_other_ranks_have_plans_of_their_own) {
  refit({tensor("first", {4, 2}, {2, 0, 0}, {2, 4, 0}), tensor("second", {4, 2}, {2, 4, 0}, {2, 8, 0})}, 10);
  ASSERT_THAT(refit_->geometries, SizeIs(1));
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(*refit_);
    ASSERT_TRUE(std::holds_alternative<Plan>(result)) << policy.name;
    const Plan& plan = std::get<Plan>(result);
    EXPECT_TRUE(check(*refit_, plan).proven()) << policy.name;
    EXPECT_TRUE(test::Twin(*refit_).run(plan).correct()) << policy.name;
  }
}

TEST_F(PlanPitfalls, D3_a_vocabulary_is_planned_in_regions) {
  refit({tensor("embed", {151'936, 4096}, {8, 0, 0}, {4, 8, 0})}, 12);
  const PlanResult result = plan_p2p(*refit_);
  const Plan& plan = std::get<Plan>(result);
  EXPECT_EQ(plan.step_count(), 8U);  // of 622 million elements
  EXPECT_LT(plan.memory().value, 8'192);
  EXPECT_TRUE(check(*refit_, plan).proven());
  for (const Policy& policy : policies()) {
    const PlanResult other = policy.make(*refit_);
    if (std::holds_alternative<Refused>(other)) continue;
    EXPECT_LT(std::get<Plan>(other).step_count(), 2'000U) << policy.name;
    EXPECT_LT(std::get<Plan>(other).memory().value, 262'144) << policy.name;
    EXPECT_TRUE(check(*refit_, std::get<Plan>(other)).proven()) << policy.name;
  }
}

// A plan may fill the fifth slot from what arrived in the first: the bound must not count those bytes.
TEST(PlanPitfallsBound, A8_copies_of_an_expert_count_no_bytes) {
  const std::string large = replaced(five_slots, "[4, 1, 1]", "[4, 1000, 1000]");
  Refit with_copy = resolve(parsed(large));
  const Refit without = resolve(parsed(replaced(large, "[0, 1, 2, 3, 0]", "[0, 1, 2, 3]")));
  EXPECT_EQ(lower_bound(with_copy).time, lower_bound(without).time);
  EXPECT_EQ(lower_bound(with_copy).cut_bytes, Bytes{8'000'000});
  with_copy.tensors[1].tensor.copy = false;
  EXPECT_EQ(lower_bound(with_copy).cut_bytes, Bytes{10'000'000});
}

TEST(PlanPitfallsBound, A3_ties_count_no_bytes_where_the_other_tensor_arrives) {
  const Refit tied = resolve(parsed(R"(tensors:
  - tensor: {name: embed, shape: [1000, 1000], dtype: bf16}
    source: {mesh: [1], first_rank: 0, placements: [replicated]}
    target: {mesh: [1], first_rank: 1, placements: [replicated]}
  - tensor: {name: head, shape: [1000, 1000], dtype: bf16, tied_to: embed}
    target: {mesh: [1], first_rank: 1, placements: [replicated]}
fabric: {preset: dgx-h100, hosts: 1}
)"));
  EXPECT_EQ(lower_bound(tied).cut_bytes, Bytes{2'000'000});
}

}  // namespace
}  // namespace isthmus
