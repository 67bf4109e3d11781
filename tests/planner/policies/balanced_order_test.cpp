#include "planner/policies/balanced_order.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

/// One tensor three or four times, on hosts of eight GPUs.
Refit repeated(std::uint64_t seed) {
  Refit refit = test::make_refit(test::repeated_case(seed));
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank)
    refit.gpu_of_rank[rank] = GpuId{(rank * 4) % 128 + rank * 4 / 128};
  return refit;
}

Plan reordered(const Refit& refit, const BalancedRounds& rounds) {
  Plan plan = std::get<Plan>(plan_balanced(refit));
  plan.schedule.clear();
  order_balanced(refit, rounds, plan);
  return plan;
}

/// Instances by where their schedule begins; those without steps are left out.
std::map<std::uint32_t, std::vector<const Instance*>> blocks_of(const Plan& plan) {
  std::map<std::uint32_t, std::vector<const Instance*>> blocks;
  for (const Instance& instance : plan.instances)
    if (!plan.pattern(instance).steps.empty()) blocks[instance.schedule].push_back(&instance);
  return blocks;
}

RC_GTEST_PROP(BalancedOrder, joins_only_equal_tensors_up_to_half_a_rounds_bytes, ()) {
  const Refit refit = repeated(*rc::gen::inRange<std::uint64_t>(0, 10'000));
  const Bytes round{*rc::gen::element<std::int64_t>(1, 64, 256, 1'000'000'000)};
  const Plan plan = reordered(refit, {{8, 8}, {round, round}, 0});
  RC_ASSERT(check(refit, plan).proven());
  const test::TwinResult end = test::Twin(refit).run(plan);
  if (!end.correct()) RC_FAIL(end.first_fault);
  for (const auto& [schedule, instances] : blocks_of(plan)) {
    const Instance& first = *instances.front();
    Bytes largest;
    for (const Step& step : plan.pattern(first).steps)
      largest = std::max(largest, refit.geometry(first.tensor).source.bytes(step.region));
    RC_ASSERT(instances.size() == 1 ||
              2 * largest.value * static_cast<std::int64_t>(instances.size()) <= round.value);
    for (const Instance* instance : instances) {
      RC_ASSERT(instance->pattern == first.pattern);
      RC_ASSERT(instance->source_base == first.source_base);
      RC_ASSERT(instance->target_base == first.target_base);
    }
  }
}

RC_GTEST_PROP(BalancedOrder, leaves_small_plans_as_they_are, ()) {
  const Refit refit = repeated(*rc::gen::inRange<std::uint64_t>(0, 10'000));
  const Bytes round{1'000'000'000};
  const Plan single = reordered(refit, {{8, 8}, {round, round}});
  for (const auto& [schedule, instances] : blocks_of(single)) RC_ASSERT(instances.size() == 1U);
  RC_ASSERT(single.schedule.size() == single.step_count());
}

TEST(BalancedOrder, joins_all_of_one_place_where_a_round_holds_them) {
  std::size_t joined = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Refit refit = repeated(seed);
    const Plan plan = reordered(refit, {{8, 8}, {Bytes{1'000'000'000}, Bytes{1'000'000'000}}, 0});
    std::map<std::tuple<PatternId, Rank, Rank>, std::uint32_t> schedules;
    for (const Instance& instance : plan.instances) {
      const auto place = std::make_tuple(instance.pattern, instance.source_base, instance.target_base);
      const auto [known, is_new] = schedules.try_emplace(place, instance.schedule);
      EXPECT_EQ(known->second, instance.schedule);
      joined += is_new ? 0 : 1;
    }
  }
  EXPECT_GT(joined, 0U);
}

}  // namespace
}  // namespace isthmus
