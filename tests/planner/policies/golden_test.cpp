// Random refits stand in tests/planner/policies_test.cpp, recorded plans in oracles/nemo_golden_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "planner/shards.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;

Plan proven_golden(const Refit& refit) {
  Plan plan = std::get<Plan>(plan_golden(refit));
  const Proof proof = check(refit, plan);
  EXPECT_TRUE(proof.proven()) << (proof.proven() ? "" : proof.violations[0].message);
  const bool small = refit.payload().value < 10'000;
  EXPECT_TRUE(!small || test::Twin(refit).run(plan).correct());
  return plan;
}

std::vector<Step> broadcasts_of(const Pattern& pattern) {
  std::vector<Step> broadcasts;
  for (const Step& step : pattern.steps)
    if (step.kind == StepKind::broadcast) broadcasts.push_back(step);
  return broadcasts;
}

RC_GTEST_PROP(Golden, broadcasts_every_distinct_region_once_and_one_at_a_time, ()) {
  const Refit refit = test::make_refit(*test::refit_cases());
  const Plan plan = std::get<Plan>(plan_golden(refit));
  for (const Instance& instance : plan.instances) {
    const std::vector<Step> broadcasts = broadcasts_of(plan.pattern(instance));
    const std::vector<Shard> shards = distinct_shards(refit.geometry(instance.tensor).source);
    RC_ASSERT(broadcasts.size() == shards.size());
    for (std::uint32_t b = 0; b < broadcasts.size(); ++b) {
      RC_ASSERT(broadcasts[b].region == shards[b].region);
      RC_ASSERT(broadcasts[b].group == b);
      RC_ASSERT(broadcasts[b].parts == 0U);  // exported tensors cost the host, these do not
      RC_ASSERT(broadcasts[b].source == LocalRank::source(shards[b].holders.front()));
    }
    for (const Step& step : plan.pattern(instance).steps)
      RC_ASSERT(step.kind == StepKind::broadcast || step.group == broadcasts.size());
  }
}

TEST(Golden, materialises_full_tensors) {
  const Refit refit = test::make_refit({{tensor("t", {8, 4}, {2, 0, 0}, {4, 2, 1})}, 6});
  EXPECT_TRUE(check(refit, proven_golden(refit)).full_tensor_materialised);
}

TEST(Golden, broadcasts_once_what_every_source_holds_whole) {
  const Plan plan = proven_golden(test::make_refit({{tensor("t", {8, 4}, {4, 0}, {2, 4, 1})}, 6}));
  const std::vector<Step> broadcasts = broadcasts_of(plan.patterns[0]);
  ASSERT_EQ(broadcasts.size(), 1U);
  EXPECT_EQ(broadcasts[0].region, box({0, 0}, {8, 4}));
  EXPECT_EQ(broadcasts[0].source, LocalRank::source(0));
}

TEST(Golden, reaches_the_owning_stage_and_all_generation_ranks) {
  // Two stages of two ranks; the tensor lies on the second. Of the generation ranks 4 to 7 it needs two.
  Refit refit = test::make_refit({{tensor("t", {8}, {2, 2, 0}, {2, 4, 0})}, 8});
  refit.train_ranks = refit.generate_ranks = 4;
  refit.stages = 2;
  refit.tensors[0].stage = 1;
  refit.tensors[0].tensor.role = Role::bulk;
  const Plan plan = proven_golden(refit);
  std::vector<std::uint32_t> ranks;
  for (const LocalRank rank : plan.patterns[0].members[0])
    ranks.push_back(global_rank(plan.instances[0], rank).value);
  EXPECT_THAT(ranks, ::testing::ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(Golden, of_a_bare_tensor_has_each_of_its_ranks_once) {
  const Plan plan = proven_golden(test::make_refit({{tensor("t", {8}, {2, 1, 0}, {4, 2, 0})}, 7}));
  std::vector<std::uint32_t> ranks;
  for (const LocalRank rank : plan.patterns[0].members[0])
    ranks.push_back(global_rank(plan.instances[0], rank).value);
  EXPECT_THAT(ranks, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST(Golden, cuts_what_a_rank_takes_out_where_32_bits_cannot_count_it) {
  const std::int64_t rows = std::int64_t{1} << 21;
  EXPECT_EQ(proven_golden(test::make_refit({{tensor("t", {rows, 1024}, {1, 0}, {1, 1})}, 2})).step_count(),
            3U);
  EXPECT_EQ(
      proven_golden(test::make_refit({{tensor("t", {rows - 1, 1024}, {1, 0}, {1, 1})}, 2})).step_count(), 2U);
}

// Ten rows over four ranks: 3 3 3 1 by ceil, 3 3 2 2 by balanced (docs/validate.md, B3).
TEST(Golden, follows_the_chunk_rule_that_the_layouts_name) {
  const auto fourth = [](ChunkRule rule) {
    const Plan plan = proven_golden(test::make_refit({{tensor("t", {10}, {4, 0, 0, rule}, {1, 4})}, 5}));
    return broadcasts_of(plan.patterns[0])[3].region;
  };
  EXPECT_EQ(fourth(ChunkRule::ceil), box({9}, {10}));
  EXPECT_EQ(fourth(ChunkRule::balanced), box({8}, {10}));
}

}  // namespace
}  // namespace isthmus
