#include "model/topology/network_routes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/topology/networks.hpp"
#include "tests/support/fabric_generator.hpp"
#include "tests/support/fabric_tools.hpp"

namespace isthmus {
namespace {

FabricSpec hashed(int hosts, std::uint64_t seed) {
  FabricSpec spec = preset_spec("dgx-h100-superpod", hosts);
  spec.routing = {.hashed = true, .seed = seed};
  return spec;
}

TEST(NetworkRoutes, hashed_pairs_keep_to_one_wire_of_each_stage_and_all_wires_are_used) {
  const Fabric fabric(hashed(64, 1));
  std::set<LinkId> up, down;
  for (std::uint32_t from = 0; from < 32 * 8; from += 8) {
    for (std::uint32_t to = 32 * 8; to < 64 * 8; to += 8) {
      const auto route = fabric.route({from}, {to});
      ASSERT_EQ(route.size(), 6u);  // PCIe, NIC, wire up, wire down, NIC, PCIe
      EXPECT_EQ(rate_of(fabric, route[2]), 50);
      EXPECT_EQ(rate_of(fabric, route[3]), 50);
      EXPECT_EQ(route, fabric.route({from}, {to}));
      up.insert(route[2]);
      down.insert(route[3]);
    }
  }
  EXPECT_EQ(up.size(), 32u);
  EXPECT_EQ(down.size(), 32u);
}

TEST(NetworkRoutes, hashed_pairs_spread_evenly_within_what_chance_allows) {
  const Fabric fabric(hashed(64, 5));
  std::map<LinkId, int> pairs;
  for (std::uint32_t from = 0; from < 32 * 8; from += 8) {
    for (std::uint32_t to = 32 * 8; to < 64 * 8; to += 8) ++pairs[fabric.route({from}, {to})[2]];
  }
  // 1024 pairs over 32 wires: 32 each, standard deviation 5.6; four and a half of them on either side.
  for (const auto& [link, count] : pairs) {
    EXPECT_GE(count, 7) << fabric.links()[link.index()].name;
    EXPECT_LE(count, 57) << fabric.links()[link.index()].name;
  }
}

TEST(NetworkRoutes, the_seed_decides_the_wires_and_nothing_else) {
  const Fabric one(hashed(64, 1)), same(hashed(64, 1)), other(hashed(64, 2));
  int moved = 0;
  for (std::uint32_t host = 0; host < 32; ++host) {
    const GpuId from{host * 8}, to{(32 + host) * 8};
    EXPECT_EQ(one.route(from, to), same.route(from, to));
    EXPECT_EQ(one.switch_hops(from, to), other.switch_hops(from, to));
    moved += one.route(from, to) != other.route(from, to) ? 1 : 0;
  }
  EXPECT_GE(moved, 20);
}

TEST(NetworkRoutes, hashed_routes_cross_five_switches_over_a_core_on_one_wire_each) {
  const Fabric fabric(hashed(9 * 32, 3));
  const auto route = fabric.route({0}, {8 * 32 * 8});
  EXPECT_EQ(fabric.switch_hops({0}, {8 * 32 * 8}), 5);
  ASSERT_EQ(route.size(), 8u);
  for (std::size_t stage = 2; stage < 6; ++stage) EXPECT_EQ(rate_of(fabric, route[stage]), 50);
}

RC_GTEST_PROP(NetworkRoutes, hashed_links_are_single_wires_and_pools_add_them_up, ()) {
  Topology topology = *arbitrary_topology(80, 4);
  topology.routing.hashed = true;
  const Fabric wires(topology);
  topology.routing.hashed = false;
  const Fabric pools(topology);
  std::int64_t cables = 0;
  for (const NetworkCable& cable : topology.network.cables) cables += cable.wire.value * cable.wires * 2;
  for (const Fabric* fabric : {&wires, &pools}) {
    std::int64_t sum = 0;
    for (const Link& link : fabric->links()) {
      if (link.link_class == LinkClass::switch_uplink) sum += link.nominal.value;
    }
    RC_ASSERT(sum == cables);
  }
}

RC_GTEST_PROP(NetworkRoutes, hashing_changes_no_hop_count_and_no_reachability, ()) {
  Topology topology = *arbitrary_topology(60, 5);
  topology.routing.hashed = true;
  const Fabric wires(topology);
  topology.routing.hashed = false;
  const Fabric pools(topology);
  for (int pair = 0; pair < 10; ++pair) {
    const GpuId from = any_gpu(wires), to = any_gpu(wires);
    RC_ASSERT(wires.reachable(from, to) == pools.reachable(from, to));
    if (!wires.reachable(from, to)) continue;
    RC_ASSERT(wires.switch_hops(from, to) == pools.switch_hops(from, to));
    const bool network = pools.switch_hops(from, to) > 1;
    RC_ASSERT(network || wires.route(from, to).size() == pools.route(from, to).size());
  }
}

TEST(NetworkRoutes, a_way_down_and_up_again_is_no_way) {
  Network network;
  for (const char* name : {"leaf 0", "leaf 1", "leaf 2"}) {
    network.switches.push_back({.tier = VertexKind::leaf, .name = name});
  }
  for (const char* name : {"spine 0", "spine 1"}) {
    network.switches.push_back({.tier = VertexKind::spine, .name = name});
  }
  const Bandwidth wire = gigabytes_per_second(50);
  network.cables = {{0, 3, 1, wire}, {1, 3, 1, wire}, {1, 4, 1, wire}, {2, 4, 1, wire}};
  for (const bool by_hash : {false, true}) {
    const NetworkRoutes routes(network, {.hashed = by_hash});
    EXPECT_EQ(routes.hops(0, 1), 3);
    EXPECT_EQ(routes.hops(1, 2), 3);
    EXPECT_EQ(routes.hops(1, 1), 1);
    EXPECT_EQ(routes.hops(0, 2), std::nullopt);
    EXPECT_EQ(routes.route(0, 2, 0), std::nullopt);
    EXPECT_EQ(routes.route(2, 0, 0), std::nullopt);
    EXPECT_EQ(routes.route(0, 1, 9)->size(), 2u);
    EXPECT_TRUE(routes.route(2, 2, 0)->empty());
  }
}

TEST(NetworkRoutes, number_a_leafs_pool_up_before_down_and_share_it_among_its_cables) {
  const Cabling cabling = superpod_network({.wire = gigabytes_per_second(50)}, 64, 8);
  const NetworkRoutes routes(cabling.network, {});
  EXPECT_EQ(routes.links().size(), 16u * 2);
  for (std::uint32_t cable = 0; cable < cabling.network.cables.size(); ++cable) {
    const std::uint32_t leaf = cabling.network.cables[cable].low;
    EXPECT_EQ(routes.cable_link(cable), leaf * 2) << cable;
  }
  EXPECT_EQ(routes.route(3, 12, 0), (std::vector<std::uint32_t>{3 * 2, 12 * 2 + 1}));
}

}  // namespace
}  // namespace isthmus
