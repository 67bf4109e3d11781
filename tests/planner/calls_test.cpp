#include "planner/calls.hpp"

#include <gtest/gtest.h>

#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus::calls_test {
namespace {

using test::tensor;

/// A whole refit of stacked tensors: two source ranks shard dimension 0, `targets` ranks dimension 1.
Refit whole_refit(int parts, Role role = Role::bulk) {
  Refit refit = test::make_refit({{tensor("t", {8, 4}, {2, 0, 0}, {2, 2, 1})}, 4});
  refit.train_ranks = refit.generate_ranks = 2;
  refit.tensors[0].tensor.parts = parts;
  refit.tensors[0].tensor.role = role;
  return refit;
}

Operations expanded(const Refit& refit, PlanResult (*make)(const Refit&)) {
  return expand(refit, std::get<Plan>(make(refit)));
}

TEST(PatternCall, is_shared_out_between_the_first_messages_of_each_receiver) {
  const Operations operations = expanded(whole_refit(1), plan_striped);
  EXPECT_EQ(operations.program, Program::python);
  int messages = 0;
  for (const Operation& operation : operations.list) {
    EXPECT_EQ(operation.call_of, operation.kind == StepKind::send ? 2U : 0U);
    if (operation.kind != StepKind::send) continue;
    ++messages;
    EXPECT_EQ(operation.call_steps, 1U);
    EXPECT_EQ(operation.caller, operation.target);
  }
  EXPECT_EQ(messages, 4);
}

TEST(PatternCall, makes_the_sender_hand_out_what_its_shard_is_stacked_of) {
  const auto exports = [](int parts) {
    std::uint32_t most = 0;
    for (const Operation& operation : expanded(whole_refit(parts), plan_striped).list)
      most = std::max(most, operation.exports);
    return most;
  };
  EXPECT_EQ(exports(8), 4U);  // half the rows, half the experts
  EXPECT_EQ(exports(1), 1U);
  EXPECT_EQ(exports(3), 2U);
}

TEST(PatternCall, is_paid_by_a_generation_rank_where_all_ranks_take_part_in_a_broadcast) {
  for (const Operation& operation : expanded(whole_refit(1), plan_golden).list) {
    if (operation.kind != StepKind::broadcast) continue;
    EXPECT_EQ(operation.call_of, operation.group == 0 ? 1U : 0U);
    if (operation.group == 0) {
      EXPECT_EQ(operation.caller, Rank{3});
    }
  }
}

TEST(PatternCall, is_made_by_no_packet_no_bare_tensor_and_no_policy_without_a_program) {
  const auto calls = [](const Operations& operations) {
    return std::count_if(operations.list.begin(), operations.list.end(),
                         [](const Operation& operation) { return operation.call_of > 0; });
  };
  EXPECT_EQ(calls(expanded(whole_refit(1, Role::misc), plan_striped)), 0);
  EXPECT_EQ(calls(expanded(whole_refit(1), plan_gather_broadcast)), 0);
  EXPECT_EQ(calls(expanded(whole_refit(1), plan_balanced)), 0);
  Refit bare = whole_refit(1);
  bare.train_ranks = 0;
  EXPECT_EQ(calls(expanded(bare, plan_striped)), 0);
  EXPECT_GT(calls(expanded(whole_refit(1), plan_p2p)), 0);
}

}  // namespace
}  // namespace isthmus::calls_test
