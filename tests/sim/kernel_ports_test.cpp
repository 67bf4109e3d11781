#include "sim/kernel_ports.hpp"

#include <gtest/gtest.h>

#include "model/scenario.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace isthmus::sim {
namespace {

Calibration with_channels(double bytes_per_second) {
  Calibration calibration = wire_only();
  calibration.channel_bandwidth.value = bytes_per_second;
  return calibration;
}

/// One gigabyte from GPU 0 to each of these, whole.
double seconds_to(const std::string& targets, int ctas, const Calibration& calibration) {
  const Refit refit =
      resolve(parse_scenario("fabric: {preset: dgx-h100, hosts: 2}\n"
                             "tensor: {shape: [1000000000], dtype: u8}\n"
                             "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                             "target: {mesh: [2], ranks: " +
                                 targets + ", placements: [replicated]}\n",
                             "one.yaml"));
  const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
  return seconds(Simulator(refit, operations, {}, ctas).run(calibration).time);
}

TEST(KernelPorts, share_a_gpus_channels_between_nvlink_and_network) {
  const Calibration calibration = with_channels(20e9);
  // GPU 1 over NVLink at 450 GB/s, GPU 8 over a NIC at 50 GB/s; 4 channels move 80 GB/s in all.
  EXPECT_NEAR(seconds_to("[1, 8]", 4, calibration), 2 / 80.0, 1e-9);
  EXPECT_NEAR(seconds_to("[1, 8]", 8, calibration), 1 / 50.0, 1e-9);
}

TEST(KernelPorts, limit_what_leaves_and_what_enters_each_on_its_own) {
  const Calibration calibration = with_channels(20e9);
  EXPECT_NEAR(seconds_to("[1, 2]", 10, calibration), 2 / 200.0, 1e-9);  // out of GPU 0
  EXPECT_NEAR(seconds_to("[1, 2]", 64, calibration), 2 / 450.0, 1e-9);
}

TEST(KernelPorts, cost_nothing_without_a_budget_or_a_rate_of_channels) {
  const double free = seconds_to("[1, 8]", 0, wire_only());
  EXPECT_EQ(seconds_to("[1, 8]", 0, with_channels(1e9)), free);
  EXPECT_EQ(seconds_to("[1, 8]", 1, wire_only()), free);
}

TEST(KernelPorts, never_gain_by_fewer_ctas) {
  double before = 0;
  for (const int ctas : {64, 32, 16, 8, 4, 2, 1}) {
    const double now = seconds_to("[1, 8]", ctas, with_channels(20e9));
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(KernelPorts, ask_each_port_once_with_all_that_crosses_it) {
  const Fabric fabric({"dgx-h100", 1, std::nullopt, std::nullopt});
  Network network;
  const KernelPorts ports(fabric, with_channels(1e9), 3, network);
  EXPECT_EQ(network.capacities().size(), 2 * fabric.gpu_count());
  const std::uint32_t nvlink = fabric.nvlink_out({2})->value, nic = fabric.nic_out({2})->value;
  const std::vector<Usage> asked = ports.asked({{nvlink, Usage::one}, {nic, Usage::one / 2}});
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].weight, Usage::one + Usage::one / 2);
  EXPECT_EQ(ports.most({{nvlink, Usage::one / 2}}), 6'000'000'000);
}

}  // namespace
}  // namespace isthmus::sim
