// Lent NICs under `balanced`: random refits between GPUs of hosts that have idle ones, with NICs so slow that
// borrowing is worth it for a few bytes.

#include "planner/policies/nic_lending.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include "planner/bound.hpp"
#include "planner/byte_classes.hpp"
#include "planner/check.hpp"
#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/port_loads.hpp"
#include "planner/policy.hpp"
#include "tests/support/lending_refit.hpp"
#include "tests/support/test_scale.hpp"
#include "tests/support/twin.hpp"

namespace isthmus::nic_lending_test {
namespace {

constexpr std::uint64_t refits = 160;  // of all shards

Plan balanced(const Refit& refit) { return std::get<Plan>(plan_balanced(refit)); }
bool lends(const Plan& plan) { return plan.lanes.size() > lending_lane; }

class NicLendingShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(NicLendingShards, plans_right_and_nearer_to_the_bound) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), refits);
  int lent = 0;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(seed);
    const Refit refit = test::lending_refit(seed, Relay::any);
    const Plan plan = balanced(refit);
    lent += lends(plan) ? 1 : 0;
    const Proof proof = check(refit, plan);
    EXPECT_TRUE(proof.proven()) << proof.violations.front().message;
    const test::Twin twin(refit);
    for (std::uint64_t schedule = 0; schedule < 3; ++schedule) {
      const test::TwinResult result = twin.run(plan, {schedule, test::TwinSchedule::nobody});
      EXPECT_TRUE(result.correct()) << result.impossible << result.first_fault;
    }
    EXPECT_GE(busiest_link(refit, plan), lower_bound(refit).any_route);
  }
  std::printf("NICs lent in %d of %d refits\n", lent, static_cast<int>(seeds.end - seeds.begin));
}
INSTANTIATE_TEST_SUITE_P(NicLending, NicLendingShards, ::testing::Range<std::uint64_t>(0, test::shards));

TEST(NicLending, uses_no_outsider_where_only_members_relay) {
  int lent = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Refit refit = test::lending_refit(seed, Relay::members);
    const std::vector<char> part = taking_part(refit);
    const Plan plan = balanced(refit);
    lent += lends(plan) ? 1 : 0;
    EXPECT_TRUE(check(refit, plan).proven()) << seed;
    for (const Instance& instance : plan.instances) {
      for (const Step& step : plan.pattern(instance).steps) {
        for (const LocalRank end : {step.source, step.target})
          EXPECT_EQ(part[refit.gpu(global_rank(instance, end)).index()], 1) << seed;
      }
    }
  }
  EXPECT_GT(lent, 0);
}

TEST(NicLending, reaches_the_bound_of_one_gpu_to_one_through_idle_neighbours) {
  for (const auto& [source, target] : {std::pair{0U, 8U}, {3U, 15U}, {5U, 24U}}) {
    Refit refit = test::sparse_refit({{8'000'000'000, {source}, {target}}}, Relay::any);
    const double bound = seconds(lower_bound(refit).time);
    EXPECT_LE(seconds(busiest_link(refit, balanced(refit))), 1.005 * bound);
    refit.settings.relay = Relay::members;
    const Plan alone = balanced(refit);
    EXPECT_FALSE(lends(alone));
    EXPECT_GE(seconds(busiest_link(refit, alone)), 7.9 * bound);
  }
}

TEST(NicLending, evens_out_what_two_groups_of_one_host_have_to_send) {
  const Refit refit = test::sparse_refit(
      {{3'000'000'000, {0, 1, 2, 3}, {8, 9, 10, 11, 12, 13, 14, 15}}, {1'000'000'000, {4, 5, 6, 7}, {8, 9}}},
      Relay::members);
  const Plan plan = balanced(refit);
  EXPECT_TRUE(lends(plan));
  EXPECT_TRUE(check(refit, plan).proven());
  EXPECT_LE(seconds(busiest_link(refit, plan)), 1.02 * seconds(lower_bound(refit).time));
}

TEST(NicLending, passes_on_from_where_the_bytes_came_in) {
  // One holder, two domains of one receiver each: the second is fed by the first, from its lenders' staging.
  const Refit refit = test::sparse_refit({{2'000'000'000, {0}, {8, 16}}}, Relay::any);
  const Plan plan = balanced(refit);
  EXPECT_TRUE(check(refit, plan).proven());
  Bytes from_staging, passed_on;
  for (const Instance& instance : plan.instances) {
    for (const Step& step : plan.pattern(instance).steps) {
      const GpuId from = refit.gpu(global_rank(instance, step.source));
      if (step.lane != network_lane || from.value / 8 != 1) continue;
      const Bytes bytes = refit.geometry(instance.tensor).source.bytes(step.region);
      passed_on += bytes;
      if (step.from == Buffer::staging) from_staging += bytes;
    }
  }
  EXPECT_EQ(passed_on, Bytes{2'000'000'000});
  EXPECT_GT(from_staging.value, passed_on.value * 8 / 10);
  EXPECT_LE(seconds(busiest_link(refit, plan)), 1.01 * seconds(lower_bound(refit).time));
}

TEST(NicLending, changes_nothing_where_the_nics_are_even_or_little_is_to_gain) {
  const Refit even = test::sparse_refit({{8'000'000'000, {0, 1, 2, 3, 4, 5, 6, 7}, {8}}}, Relay::members);
  EXPECT_FALSE(lends(balanced(even)));
  const Refit small = test::sparse_refit({{2'000'000, {0}, {8}}}, Relay::any);  // 40 us
  EXPECT_FALSE(lends(balanced(small)));
}

}  // namespace
}  // namespace isthmus::nic_lending_test
