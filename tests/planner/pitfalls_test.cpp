// Faults that really happened and that only a plan can show, each as its smallest layout, and the same layout
// without the fault. Those of coverage, ownership and order stand in check_*_test.cpp; docs/validate.md lists
// all classes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/bound.hpp"
#include "planner/plan_file.hpp"
#include "planner/plan_identity.hpp"
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

TEST_F(PlanPitfalls, C1_a_plan_for_other_ranks_is_refused_though_all_sizes_agree) {
  const Refit first = test::make_refit({{tensor("w", {4, 2}, {2, 0, 0}, {2, 4, 0})}, 6});
  const Refit second = test::make_refit({{tensor("w", {4, 2}, {2, 4, 0}, {2, 8, 0})}, 10});
  ASSERT_EQ(first.geometries, second.geometries);
  const Plan plan = std::get<Plan>(plan_p2p(first));
  EXPECT_TRUE(check_against(first, plan, first).proven());
  const Proof refused = check_against(first, plan, second);
  EXPECT_THAT(messages(refused),
              ::testing::ElementsAre("tensor w: plan is for source ranks 0-1, target ranks "
                                     "4-5; asked for 4-5 -> 8-9"));
  EXPECT_EQ(refused.violations[0].fault, Fault::other_refit);
}

TEST_F(PlanPitfalls, B3_a_plan_for_another_chunk_rule_is_refused_by_its_rule) {
  const auto made = [](ChunkRule rule) {
    return test::make_refit({{tensor("t", {10}, {1, 0}, {4, 1, 0, rule})}, 5});
  };
  const Refit balanced = made(ChunkRule::balanced), ceil = made(ChunkRule::ceil);
  const Plan plan = std::get<Plan>(plan_p2p(balanced));
  EXPECT_TRUE(check_against(balanced, plan, made(ChunkRule::balanced)).proven());
  EXPECT_THAT(messages(check_against(balanced, plan, ceil)),
              ::testing::ElementsAre("tensor t: plan is for target chunk rule balanced; asked for ceil"));
}

TEST_F(PlanPitfalls, C2_an_instance_left_over_from_an_earlier_refit_is_named) {
  refit({tensor("T", {2}, {1, 0}, {1, 2}), tensor("U", {2}, {1, 1}, {1, 2})}, 3);
  send(0, 0, box({0}, {2}), 0, 0);
  send(0, 0, box({0}, {2}), 1, 1);
  plan_.version = 2;
  for (Instance& instance : plan_.instances) instance.version = 2;
  expect_proven();
  plan_.instances[0].version = 1;
  const Proof result = proof();
  EXPECT_THAT(messages(result),
              ::testing::ElementsAre("tensor T: instance 0 moves version 1; the plan is for version 2"));
  EXPECT_EQ(result.violations[0].fault, Fault::wrong_version);
}

/// Three packets from rank 0 to rank 1, received into two buffers in turn and then loaded.
class PacketPitfalls : public PlanPitfalls {
 protected:
  void SetUp() override {
    refit({tensor("p0", {2}, {1, 0}, {1, 1}), tensor("p1", {2}, {1, 0}, {1, 1}),
           tensor("p2", {2}, {1, 0}, {1, 1})},
          2);
    plan_.buffers = {{"even", Bytes{4}}, {"odd", Bytes{4}}};
    for (std::uint32_t packet = 0; packet < 3; ++packet) {
      send(0, 0, box({0}, {2}), 0, packet).to = Buffer::staging;
      Step load;
      load.kind = StepKind::load;
      load.from = Buffer::staging;
      load.source = load.target = LocalRank::target(0);
      load.region = box({0}, {2});
      load.group = 1;
      add(load, {0}, packet);
      plan_.instances[packet].group = 2 * packet;
      plan_.instances[packet].buffer = packet % 2;
    }
  }
};

TEST_F(PacketPitfalls, C3_a_packet_received_over_one_that_is_still_to_be_loaded_is_named) {
  expect_proven();
  plan_.patterns[0].steps[1].group = 5;  // packet 0 is loaded after packet 2 arrived
  expect_fault(
      Fault::overwritten,
      "tensor p2, element (0) on rank 1: step 0 overwrites what tensor p0 staged in bytes 0 to 4 of buffer "
      "even until its step 1, groups 0 to 5 and from 4 on; a lane must bring the second at least its window "
      "of groups after the "
      "first's last use");
  plan_.buffers.push_back({"third", Bytes{4}});
  plan_.instances[2].buffer = 2;
  expect_proven();
}

TEST_F(PacketPitfalls, C3_loads_on_another_lane_than_receipts_do_not_free_a_buffer) {
  for (Pattern& pattern : plan_.patterns) pattern.steps[1].lane = 1;
  const Proof result = proof();
  ASSERT_EQ(result.violation_count, 1U);
  EXPECT_EQ(result.violations[0].fault, Fault::overwritten);
  EXPECT_THAT(
      result.violations[0].message,
      ::testing::HasSubstr("step 0 overwrites what tensor p0 staged in bytes 0 to 4 of buffer even until "
                           "its step 1, on lanes that do not order them"));
  for (Pattern& pattern : plan_.patterns) pattern.steps[1].lane = 0;
  expect_proven();
}

TEST_F(PacketPitfalls, C3_a_load_that_does_not_wait_for_its_packet_is_named) {
  plan_.patterns[1].steps[1].after_end = plan_.patterns[1].steps[1].after_begin;
  plan_.patterns[1].steps[1].lane = 1;
  const Proof result = proof();
  ASSERT_FALSE(result.proven());
  EXPECT_EQ(result.violations[0].fault, Fault::not_held);
  EXPECT_THAT(result.violations[0].message,
              ::testing::HasSubstr("step 1 reads it from staging without waiting for step 0"));
}

TEST_F(PacketPitfalls, D2_a_buffer_of_four_gibibytes_is_refused) {
  plan_.buffers[0].size = Bytes{0xFFFF'FFFF};
  EXPECT_TRUE(proof().proven());
  plan_.buffers[0].size = Bytes{0x1'0000'0000};
  EXPECT_THAT(messages(proof()),
              ::testing::ElementsAre("buffer 0 (even) - 4294967296 bytes - 0 to 4294967295 are allowed"));
}

TEST(PlanPitfallsFile, C5_asks_for_nothing_but_numbers_texts_and_lists) {
  const Scenario scenario = parsed(bare_tensor);
  const Refit made_for = resolve(scenario);
  const std::string text = to_json(scenario, made_for, std::get<Plan>(plan_p2p(made_for)));
  const PlanFile back = plan_from_json(text, "plan.json");
  EXPECT_EQ(to_json(back.scenario, back.refit, back.plan), text);
  const std::string asking = replaced(text, "\"lanes\"", "\"pickle\": \"megatron.core.Rank\",\n\"lanes\"");
  try {
    plan_from_json(asking, "plan.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().key, "pickle");
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
