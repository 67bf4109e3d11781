#include "model/topology/bisection.hpp"

#include <chrono>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/fabric_paths.hpp"
#include "tests/support/topology_generator.hpp"

namespace isthmus {
namespace {

/// Vertex by vertex: source, every NIC, every switch, target.
std::int64_t flow_without_merging(const Topology& topology) {
  const auto nics = static_cast<std::uint32_t>(topology.switch_of_nic.size());
  const auto switches = static_cast<std::uint32_t>(topology.network.switches.size());
  const std::uint32_t source = nics + switches, target = source + 1;
  std::uint32_t hosts = 0, host = 0, nic = 0;
  for (const std::uint32_t type : topology.blocks) hosts += topology.types[type].hosts;
  std::vector<FlowArc> arcs;
  for (const std::uint32_t type : topology.blocks) {
    const Block& block = topology.types[type];
    for (const BlockNic& each : block.nics) {
      const bool first = host + *block.vertices[each.vertex].host < hosts / 2;
      const std::uint32_t place = nics + topology.switch_of_nic[nic];
      if (topology.switch_of_nic[nic] != no_switch) {
        arcs.push_back(first ? FlowArc{source, nic, each.rate.value} : FlowArc{place, nic, each.rate.value});
        arcs.push_back(first ? FlowArc{nic, place, each.rate.value} : FlowArc{nic, target, each.rate.value});
      }
      ++nic;
    }
    host += block.hosts;
  }
  for (const NetworkCable& cable : topology.network.cables) {
    arcs.push_back({nics + cable.low, nics + cable.high, cable.wire.value * cable.wires});
    arcs.push_back({nics + cable.high, nics + cable.low, cable.wire.value * cable.wires});
  }
  return maximum_flow(target + 1, arcs, source, target);
}

RC_GTEST_PROP(Bisection, is_the_maximum_flow_of_the_network_that_nothing_was_merged_in, ()) {
  Topology topology = *arbitrary_topology();
  for (Block& block : topology.types)
    for (BlockNic& nic : block.nics)
      if (nic.rate == Bandwidth{0}) nic.rate = {7};
  for (NetworkCable& cable : topology.network.cables)
    if (cable.wire == Bandwidth{0}) cable.wire = {25'000'000'000};
  const auto bisection = bisection_bandwidth(topology);
  RC_CLASSIFY(bisection.has_value(), "known");
  if (bisection) RC_ASSERT(bisection->value == flow_without_merging(topology));
}

TEST(Bisection, is_bound_by_ports_or_by_cables) {
  Topology topology = healthy_topology(8, 4, 2);
  EXPECT_EQ(bisection_bandwidth(topology), Bandwidth{4 * 4 * 50'000'000'000});
  // Host 4 to 7 move to leaves of their own, with one cable to each spine.
  for (std::uint32_t rail = 0; rail < 4; ++rail) {
    topology.network.switches.push_back({VertexKind::leaf, "far"});
    topology.network.cables.push_back({6 + rail, 4, 1, {50'000'000'000}});
    topology.network.cables.push_back({6 + rail, 5, 1, {50'000'000'000}});
    for (std::uint32_t host = 4; host < 8; ++host) topology.switch_of_nic[host * 4 + rail] = 6 + rail;
  }
  EXPECT_EQ(bisection_bandwidth(topology), Bandwidth{4 * 2 * 50'000'000'000});
}

TEST(Bisection, of_unknown_rates_or_of_one_host_is_not_known) {
  EXPECT_EQ(bisection_bandwidth(healthy_topology(1)), std::nullopt);
  Topology topology = healthy_topology();
  topology.network.cables[0].wire = {0};
  EXPECT_EQ(bisection_bandwidth(topology), std::nullopt);
  topology = healthy_topology();
  topology.types[0].nics[0].rate = {0};
  EXPECT_EQ(bisection_bandwidth(topology), std::nullopt);
}

/// 512 units of 32 hosts with leaves of their own below 64 spines, one leaf short of a cable.
TEST(Bisection, of_sixteen_thousand_hosts_takes_seconds_at_most) {
  Topology topology = healthy_topology(1, 8, 1);
  topology.blocks.assign(16'384, 0);
  topology.switch_of_nic.clear();
  topology.network = {};
  for (std::uint32_t spine = 0; spine < 64; ++spine)
    topology.network.switches.push_back({VertexKind::spine, ""});
  for (std::uint32_t leaf = 0; leaf < 4096; ++leaf) {
    topology.network.switches.push_back({VertexKind::leaf, ""});
    for (std::uint32_t spine = leaf == 0 ? 1 : 0; spine < 64; ++spine)
      topology.network.cables.push_back({64 + leaf, spine, 1, {25'000'000'000}});
  }
  for (std::uint32_t host = 0; host < 16'384; ++host)
    for (std::uint32_t rail = 0; rail < 8; ++rail)
      topology.switch_of_nic.push_back(64 + host / 32 * 8 + rail);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(bisection_bandwidth(topology), Bandwidth{(std::int64_t{2048} * 64 - 1) * 25'000'000'000});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace isthmus
