#include "planner/plan_difference.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

PlanFile file_of(const Scenario& scenario, const Plan& plan) { return {scenario, resolve(scenario), plan}; }

/// Patterns in reverse order, with instances that name their new numbers.
Plan renumbered(Plan plan) {
  const auto count = static_cast<std::uint32_t>(plan.patterns.size());
  std::reverse(plan.patterns.begin(), plan.patterns.end());
  for (Instance& instance : plan.instances) instance.pattern.value = count - 1 - instance.pattern.value;
  std::reverse(plan.instances.begin(), plan.instances.end());
  return plan;
}

RC_GTEST_PROP(PlanDifference, does_not_see_the_numbers_of_patterns, ()) {
  std::ostringstream yaml;
  showValue(*test::refit_cases(), yaml);
  const Scenario scenario = parsed(yaml.str());
  const Plan plan =
      test::build_plan(resolve(scenario), test::options_of(*rc::gen::inRange<std::uint64_t>(0, 100'000)));
  const PlanFile first = file_of(scenario, plan), second = file_of(scenario, renumbered(plan));
  RC_ASSERT(plan_difference(first, second).equal());
  const PlanTotals a = plan_totals(first.refit, first.plan), b = plan_totals(second.refit, second.plan);
  RC_ASSERT(a.by_kind == b.by_kind);
  RC_ASSERT(a.by_lane == b.by_lane);
  RC_ASSERT(a.by_pair == b.by_pair);
}

struct PlanChange {
  const char* name;
  std::function<void(Plan&)> change;
};

TEST(PlanDifference, sees_every_change_of_a_step_or_its_binding) {
  const Scenario scenario = parsed(bare_tensor);
  Plan plan = std::get<Plan>(plan_gather_broadcast(resolve(scenario)));
  ASSERT_GT(plan.patterns[0].members.size(), 0U);
  const PlanFile first = file_of(scenario, plan);
  const auto step = [](Plan& changed) -> Step& { return changed.patterns[0].steps.back(); };
  const std::vector<PlanChange> changes{
      {"group", [&](Plan& p) { ++step(p).group; }},
      {"lane", [&](Plan& p) { ++step(p).lane; }},
      {"parts", [&](Plan& p) { ++step(p).parts; }},
      {"region", [&](Plan& p) { ++step(p).region.begin[0]; }},
      {"buffer", [&](Plan& p) { step(p).from = Buffer::target; }},
      {"dependency", [&](Plan& p) { step(p).after_end = step(p).after_begin; }},
      {"step", [&](Plan& p) { p.patterns[0].steps.pop_back(); }},
      {"members", [&](Plan& p) { p.patterns[0].members[0].pop_back(); }},
      {"base", [&](Plan& p) { ++p.instances[0].target_base.value; }},
      {"refit", [&](Plan& p) { ++p.instances[0].version; }},
      {"window", [&](Plan& p) { ++p.lanes[0].window; }},
      {"memory",
       [&](Plan& p) {
         p.buffers.push_back({"b", Bytes{8}});
       }},
      {"instance", [&](Plan& p) { p.instances.pop_back(); }},
      {"twice", [&](Plan& p) { p.instances.push_back(p.instances[0]); }},
  };
  EXPECT_TRUE(plan_difference(first, file_of(scenario, plan)).equal());
  for (const PlanChange& each : changes) {
    Plan changed = plan;
    each.change(changed);
    const PlanFile second = file_of(scenario, changed);
    EXPECT_FALSE(plan_difference(first, second).equal()) << each.name;
    EXPECT_FALSE(plan_difference(second, first).equal()) << each.name;
  }
  Plan named = plan;
  named.policy = "another name";
  EXPECT_TRUE(plan_difference(first, file_of(scenario, named)).equal());
}

TEST(PlanDifference, sees_that_plans_are_for_different_refits) {
  const Scenario scenario = parsed(bare_tensor), other = parsed(replaced(bare_tensor, "bf16", "f32"));
  const Plan plan = std::get<Plan>(plan_p2p(resolve(scenario)));
  const PlanDifference difference = plan_difference(file_of(scenario, plan), file_of(other, plan));
  ASSERT_EQ(difference.identity.size(), 1U);
  EXPECT_TRUE(difference.steps.empty());
  EXPECT_FALSE(difference.equal());
}

TEST(PlanTotals, count_what_arrives) {
  const Scenario scenario = parsed(bare_tensor);  // [8, 6] in BF16 to columns on three ranks
  const Refit refit = resolve(scenario);
  const PlanTotals totals = plan_totals(refit, std::get<Plan>(plan_p2p(refit)));
  EXPECT_EQ(totals.all.steps, 6U);
  EXPECT_EQ(totals.all.bytes, Bytes{96});
  EXPECT_EQ(totals.by_kind.at(StepKind::send), totals.all);
  EXPECT_EQ(totals.by_lane[0].bytes + totals.by_lane[1].bytes, Bytes{96});
  EXPECT_EQ(totals.by_pair.at({Rank{0}, Rank{6}}), Bytes{16});
}

TEST(PlanTotals, end_where_the_numbers_do) {
  const Scenario scenario = parsed(replaced(bare_tensor, "[8, 6]", "[8, 600000000000]"));
  const Refit refit = resolve(scenario);
  Plan plan = std::get<Plan>(plan_p2p(refit));
  Step gather;
  gather.kind = StepKind::all_gather;
  gather.region = whole({8, 600'000'000'000});
  plan.patterns[0].members = {std::vector<LocalRank>(1'000'000, LocalRank::target(0))};
  plan.patterns[0].steps = {gather, gather};
  EXPECT_EQ(plan_totals(refit, plan).all.bytes.value, std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace isthmus
