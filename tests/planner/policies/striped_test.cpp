// Random refits stand in tests/planner/policies_test.cpp, recorded plans in oracles/nemo_striped_test.cpp.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;

/// Checks the plan with the twin too where the tensor is small.
Plan proven(const Refit& refit) {
  Plan plan = std::get<Plan>(plan_striped(refit));
  const Proof proof = check(refit, plan);
  EXPECT_TRUE(proof.proven()) << (proof.proven() ? "" : proof.violations[0].message);
  const bool small = refit.payload().value < 10'000;
  EXPECT_TRUE(!small || test::Twin(refit).run(plan).correct());
  return plan;
}

std::vector<StepKind> kinds(const Plan& plan) {
  std::vector<StepKind> result;
  for (const Step& step : plan.patterns[0].steps) result.push_back(step.kind);
  return result;
}

TEST(Striped, gathers_in_place_what_each_replica_has_got) {
  const Plan plan = proven(test::make_refit({{tensor("t", {4, 2}, {1, 0}, {2, 1})}, 3}));
  EXPECT_EQ(kinds(plan), (std::vector<StepKind>{StepKind::send, StepKind::send, StepKind::all_gather}));
  const Step& gather = plan.patterns[0].steps[2];
  EXPECT_EQ(gather.from, Buffer::target);
  EXPECT_EQ(gather.to, Buffer::target);
  EXPECT_EQ(gather.region, box({0, 0}, {4, 2}));
  EXPECT_EQ(plan.patterns[0].after, (std::vector<std::uint32_t>{0, 1}));
}

TEST(Striped, falls_back_to_the_representatives_broadcast_where_stripes_are_uneven) {
  const Plan plan = proven(test::make_refit({{tensor("t", {3, 2}, {1, 0}, {2, 1})}, 3}));
  EXPECT_EQ(kinds(plan), (std::vector<StepKind>{StepKind::send, StepKind::broadcast}));
  EXPECT_EQ(plan.patterns[0].steps[1].source, LocalRank::target(0));
}

TEST(Striped, packs_before_it_sends_columns_and_unpacks_columns_that_arrived) {
  const Plan packing = proven(test::make_refit({{tensor("t", {2, 4}, {1, 0}, {2, 1, 1})}, 3}));
  EXPECT_EQ(kinds(packing),
            (std::vector<StepKind>{StepKind::pack, StepKind::pack, StepKind::send, StepKind::send}));
  const Plan unpacking = proven(test::make_refit({{tensor("t", {2, 4}, {2, 0, 1}, {1, 2})}, 3}));
  EXPECT_EQ(kinds(unpacking),
            (std::vector<StepKind>{StepKind::send, StepKind::send, StepKind::unpack, StepKind::unpack}));
  for (const Plan* plan : {&packing, &unpacking}) {
    const std::vector<Step>& steps = plan->patterns[0].steps;
    EXPECT_LT(steps[1].group, steps[2].group);
    EXPECT_EQ(steps[0].group, steps[1].group);
  }
}

TEST(Striped, gathers_after_the_unpacks_that_brought_the_stripes) {
  const Plan plan = proven(test::make_refit({{tensor("t", {4, 4}, {2, 0, 1}, {2, 2})}, 4}));
  const Pattern& pattern = plan.patterns[0];
  ASSERT_EQ(pattern.steps.back().kind, StepKind::all_gather);
  for (std::uint32_t a = pattern.steps.back().after_begin; a < pattern.steps.back().after_end; ++a)
    EXPECT_EQ(pattern.steps[pattern.after[a]].kind, StepKind::unpack);
  EXPECT_EQ(pattern.steps.back().after_end - pattern.steps.back().after_begin, 4U);
}

TEST(Striped, copies_where_the_receiver_holds_the_box) {
  const Plan plan = proven(test::make_refit({{tensor("t", {4}, {2, 0, 0}, {2, 0, 0})}, 2}));
  EXPECT_EQ(kinds(plan), (std::vector<StepKind>{StepKind::copy, StepKind::copy}));
}

TEST(Striped, materialises_no_full_tensor) {
  const Refit refit = test::make_refit({{tensor("t", {8, 4}, {2, 0, 0}, {4, 2, 1})}, 6});
  EXPECT_FALSE(check(refit, proven(refit)).full_tensor_materialised);
}

TEST(Striped, puts_no_more_operations_into_a_group_than_are_safe) {
  const Plan plan = proven(test::make_refit({{tensor("t", {9000, 2}, {1, 0}, {9000, 1, 0})}, 9001}));
  EXPECT_EQ(plan.patterns[0].steps.back().group, 1U);
  const Plan packed = proven(test::make_refit({{tensor("t", {2, 9000}, {1, 0}, {9000, 1, 1})}, 9001}));
  EXPECT_EQ(packed.patterns[0].steps.back().group, 3U);  // two of packs, two of sends
}

TEST(Striped, cuts_messages_whose_size_32_bits_cannot_count) {
  const std::int64_t rows = std::int64_t{1} << 21;
  const Plan plan = proven(test::make_refit({{tensor("t", {rows, 1024}, {1, 0}, {1, 1})}, 2}));
  EXPECT_EQ(plan.step_count(), 2U);
  EXPECT_EQ(proven(test::make_refit({{tensor("t", {rows - 1, 1024}, {1, 0}, {1, 1})}, 2})).step_count(), 1U);
}

// Ten rows over four ranks: 3 3 3 1 by ceil, 3 3 2 2 by balanced (docs/validate.md, B3).
TEST(Striped, follows_the_chunk_rule_that_the_layouts_name) {
  const auto fourth = [](ChunkRule rule) {
    const Plan plan = proven(test::make_refit({{tensor("t", {10}, {1, 0}, {4, 1, 0, rule})}, 5}));
    return plan.patterns[0].steps.back().region;
  };
  EXPECT_EQ(fourth(ChunkRule::ceil), box({9}, {10}));
  EXPECT_EQ(fourth(ChunkRule::balanced), box({8}, {10}));
}

TEST(Striped, made_for_one_chunk_rule_is_refused_for_the_other) {
  const Refit ceil = test::make_refit({{tensor("t", {10}, {1, 0}, {4, 1, 0, ChunkRule::ceil})}, 5});
  const Refit balanced = test::make_refit({{tensor("t", {10}, {1, 0}, {4, 1, 0, ChunkRule::balanced})}, 5});
  EXPECT_FALSE(check(ceil, proven(balanced)).proven());
  EXPECT_FALSE(check(balanced, proven(ceil)).proven());
}

}  // namespace
}  // namespace isthmus
