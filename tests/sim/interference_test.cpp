#include "sim/interference.hpp"

#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "tests/sim/fault_case.hpp"

namespace isthmus::sim {
namespace {

Interference found_under(const Disturbances& disturbances) {
  const Refit refit = test::fault_refit(1);
  const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
  Routes routes(refit, operations);
  return interference(refit, operations, disturbances, routes);
}

std::int64_t share_of(const Interference::Period& period, LinkId link) {
  for (const auto& [known, share] : period.links) {
    if (known == link) return share;
  }
  return Interference::whole;
}

TEST(Interference, of_overlapping_faults_the_worst_holds_while_it_lasts) {
  const FaultSubject nic{FaultSubject::Kind::nic, 0, 0, {}};
  const Interference found =
      found_under({{}, {{{10}, nic, 0.5, {}}, {{20}, nic, 0.25, Duration{30}}, {{25}, nic, 0.75, {}}}, {}});
  std::vector<std::int64_t> begins, shares;
  const LinkId out = *test::fault_refit(1).fabric.nic_out({0});
  for (const Interference::Period& period : found.periods) {
    begins.push_back(period.begins.value);
    shares.push_back(share_of(period, out));
  }
  EXPECT_EQ(begins, (std::vector<std::int64_t>{10, 20, 25, 30}));
  EXPECT_EQ(shares, (std::vector<std::int64_t>{500'000'000, 250'000'000, 250'000'000, 500'000'000}));
}

TEST(Interference, of_kernels_multiplies_and_of_ports_adds_loads) {
  BackgroundLoad half, nic;
  half.on = BackgroundLoad::On::sm;
  half.share = 0.5;
  half.hosts = {1};
  half.gpus = {2};
  nic.share = 0.1;
  nic.direction = BackgroundLoad::Direction::in;
  const Interference found = found_under({{half, half, nic, nic}, {}, {}});
  ASSERT_EQ(found.kernels.size(), 1U);
  EXPECT_EQ(found.kernels[0], (std::pair{GpuId{10}, Interference::whole / 4}));
  EXPECT_EQ(found.loads.size(), 64U);  // two on the NIC into each of 32 GPUs
}

TEST(Interference, adds_ways_around_only_where_steps_are_rerouted) {
  const FaultSubject nic{FaultSubject::Kind::nic, 0, 0, {}};
  const Disturbances retry{{}, {{{10}, nic, 0, {}}}, {FailedSteps::retry, {1000}}};
  EXPECT_TRUE(found_under(retry).periods[0].detours.empty());
  Disturbances reroute = retry;
  reroute.failed_steps.policy = FailedSteps::reroute;
  EXPECT_FALSE(found_under(reroute).periods[0].detours.empty());
}

TEST(Interference, leaves_something_of_every_capacity_that_has_not_failed) {
  EXPECT_EQ(left_of(3, Interference::whole / 1000), 1);
  EXPECT_EQ(left_of(3, 0), 0);
  EXPECT_EQ(left_of(3, Interference::whole), 3);
  EXPECT_EQ(left_of(5, Interference::whole / 2), 2);
}

}  // namespace
}  // namespace isthmus::sim
