#include "sim/interference.hpp"

#include <gtest/gtest.h>

#include "model/scenario.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/fault_case.hpp"

namespace isthmus::sim {
namespace {

Interference found_under(const Disturbances& disturbances) {
  const Refit refit = cases::fault_refit(1);
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
  const LinkId out = *cases::fault_refit(1).fabric.nic_out({0});
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

TEST(Interference, tells_what_each_load_got_beside_the_refit) {
  Refit refit =
      resolve(parse_scenario("fabric: {preset: dgx-h100, hosts: 2}\n"
                             "tensor: {shape: [1000000000], dtype: u8}\n"
                             "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                             "target: {mesh: [1], first_rank: 8, placements: [replicated]}\n"
                             "background:\n"
                             "  - {on: nic, hosts: 1, gpus: 0, direction: in, share: 0.8, flows: 3}\n"
                             "  - {on: nic, hosts: 0, gpus: 0, direction: out, rate: 5 GB/s}\n",
                             "one.yaml"));
  const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
  const Prediction prediction = simulate(refit, operations, wire_only());
  // Into the NIC three flows of at most 13.3 GB/s share 50 GB/s with one of the refit: 12.5 GB/s each, 80 ms.
  EXPECT_NEAR(seconds(prediction.time), 0.08, 1e-9);
  ASSERT_EQ(prediction.background.size(), 2U);
  const BackgroundShare &into = prediction.background[0], &out = prediction.background[1];
  EXPECT_EQ(into.load, 0U);
  EXPECT_EQ(into.where, refit.fabric.nic_in({8})->value);
  EXPECT_NEAR(static_cast<double>(into.wanted.value), 40e9, 10);
  EXPECT_NEAR(static_cast<double>(into.moved.value), 3e9, 10);
  EXPECT_EQ(out.load, 1U);
  EXPECT_NEAR(static_cast<double>(out.moved.value), 0.4e9, 10);
}

}  // namespace
}  // namespace isthmus::sim
