// Hosts whose rails nothing joins: random refits between GPUs of any rails, and those that have to be fast.

#include "planner/policies/rail_hops.hpp"

#include <cstdio>

#include <gtest/gtest.h>

#include "planner/bound.hpp"
#include "planner/check.hpp"
#include "planner/policies/port_loads.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/sparse_refit.hpp"
#include "tests/support/test_scale.hpp"
#include "tests/support/twin.hpp"

namespace isthmus::rail_hops_test {
namespace {

constexpr std::uint64_t refits = 160;  // of all shards

Fabric rails_of_h100(int hosts, NetworkKind network = NetworkKind::rails) {
  FabricSpec spec{"dgx-h100", hosts, std::nullopt, std::nullopt};
  spec.network = network;
  return Fabric(spec);
}

/// Every second, third or fourth GPU is a rank.
Refit refit_on_rails(std::uint64_t seed) {
  Refit refit = test::make_refit(test::sample_case(seed));
  const auto stride = static_cast<std::uint32_t>(2 + seed % 3);
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = {r * stride};
  refit.fabric = rails_of_h100(32);
  refit.settings.relay = Relay::any;
  add_relay_ranks(refit);
  return refit;
}

bool all_reachable(const Refit& refit, const Plan& plan) {
  for (const Instance& instance : plan.instances) {
    for (const Step& step : plan.pattern(instance).steps) {
      if (!refit.fabric.reachable(refit.gpu(global_rank(instance, step.source)),
                                  refit.gpu(global_rank(instance, step.target))))
        return false;
    }
  }
  return true;
}

/// By GPU: whether it holds or wants a part of a tensor.
std::vector<char> gpus_of_tensors(const Refit& refit) {
  std::vector<char> part(refit.fabric.gpu_count());
  for (const RefitEntry& entry : refit.tensors) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    for (const Rank rank : geometry.source.mesh.ranks)
      part[refit.gpu({entry.source_base.value + rank.value}).index()] = 1;
    for (const Rank rank : geometry.target.mesh.ranks)
      part[refit.gpu({entry.target_base.value + rank.value}).index()] = 1;
  }
  return part;
}

class RailHopsShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RailHopsShards, plan_right_and_only_along_ways_that_there_are) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), refits);
  int hopped = 0, refused = 0;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(seed);
    const Refit refit = refit_on_rails(seed);
    const PlanResult result = plan_balanced(refit);
    if (std::holds_alternative<Refused>(result)) {
      ++refused;
      continue;
    }
    const Plan& plan = std::get<Plan>(result);
    hopped += plan.lanes.size() > 2 ? 1 : 0;
    EXPECT_TRUE(all_reachable(refit, plan));
    const Proof proof = check(refit, plan);
    EXPECT_TRUE(proof.proven()) << (proof.proven() ? "" : proof.violations.front().message);
    EXPECT_TRUE(test::Twin(refit).run(plan, {seed, test::TwinSchedule::nobody}).correct());
  }
  std::printf("hops in %d of %d refits, %d refused\n", hopped, static_cast<int>(seeds.end - seeds.begin),
              refused);
  EXPECT_EQ(refused, 0);
}
INSTANTIATE_TEST_SUITE_P(RailHops, RailHopsShards, ::testing::Range<std::uint64_t>(0, test::shards));

TEST(RailHops, go_out_on_the_receivers_rail_near_the_bound) {
  Refit refit = test::sparse_refit({{2'000'000'000, {0}, {8, 9, 10, 11, 12, 13, 14, 15}},
                                    {2'000'000'000, {3}, {8, 9, 10, 11, 12, 13, 14, 15}}},
                                   Relay::any);
  refit.fabric = rails_of_h100(4);
  EXPECT_FALSE(rails_joined(refit));
  const Plan plan = std::get<Plan>(plan_balanced(refit));
  EXPECT_TRUE(check(refit, plan).proven());
  EXPECT_TRUE(all_reachable(refit, plan));
  EXPECT_LE(seconds(busiest_link(refit, plan)), 1.01 * seconds(lower_bound(refit).time));
}

TEST(RailHops, are_not_taken_for_ways_through_a_domain_that_source_and_target_share) {
  int apart = 0;
  for (std::uint64_t seed = 0; seed < refits; ++seed) {
    SCOPED_TRACE(seed);
    const Refit refit = refit_on_rails(seed);
    const std::vector<char> part = gpus_of_tensors(refit);
    bool joined = true;
    for (std::uint32_t a = 0; a < part.size(); ++a) {
      for (std::uint32_t b = 0; b < part.size(); ++b)
        joined = joined && (part[a] == 0 || part[b] == 0 || refit.fabric.reachable({a}, {b}));
    }
    EXPECT_EQ(rails_joined(refit), joined);
    apart += joined ? 0 : 1;
  }
  EXPECT_GE(apart, static_cast<int>(refits) / 4);
}

TEST(RailHops, have_reasons_where_no_neighbour_may_help) {
  Refit refit = test::sparse_refit({{1'000, {0}, {9}}}, Relay::members);
  refit.fabric = rails_of_h100(4);
  const PlanResult result = plan_balanced(refit);
  ASSERT_TRUE(std::holds_alternative<Refused>(result));
  EXPECT_EQ(std::get<Refused>(result).reason, "no way from GPU 0 to GPU 9, nor by one hop over NVLink");
  Refit on_one_rail = test::sparse_refit({{1'000, {0}, {8}}}, Relay::members);
  on_one_rail.fabric = rails_of_h100(4);
  EXPECT_TRUE(std::holds_alternative<Plan>(plan_balanced(on_one_rail)));
}

TEST(RailHops, are_for_no_policy_that_sends_directly) {
  Refit refit = test::sparse_refit({{1'000, {0}, {9}}}, Relay::any);
  refit.fabric = rails_of_h100(4);
  for (const Policy& policy : policies()) {
    const bool direct = policy.name != "balanced";
    EXPECT_EQ(std::holds_alternative<Refused>(policy.make(refit)), direct) << policy.name;
  }
  refit.fabric = rails_of_h100(4, NetworkKind::superpod);
  EXPECT_TRUE(rails_joined(refit));
  EXPECT_TRUE(std::holds_alternative<Plan>(find_policy("p2p")->make(refit)));
}

}  // namespace
}  // namespace isthmus::rail_hops_test
