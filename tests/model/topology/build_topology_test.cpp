// Networks, racks in partial use, parts joined together, and what build_topology refuses.

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/topology/networks.hpp"
#include "tests/support/block_builder.hpp"
#include "tests/support/fabric_generator.hpp"
#include "tests/support/fabric_tools.hpp"

namespace isthmus::build_topology_test {
namespace {

using Kind = VertexKind;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

FabricSpec with_network(const std::string& preset, int hosts, NetworkKind network, bool pxn = false) {
  FabricSpec spec = preset_spec(preset, hosts);
  spec.network = network;
  spec.routing.pxn = pxn;
  return spec;
}

FabricSpec joined(std::vector<FabricSpec> parts, double rate) {
  FabricSpec spec;
  spec.preset.clear();
  spec.parts = std::move(parts);
  spec.join_bandwidth = gigabytes_per_second(rate);
  return spec;
}

TEST(BuildTopology, racks_in_partial_use_hold_so_many_gpus_each) {
  FabricSpec spec = preset_spec("gb200-nvl72", 40);
  spec.gpus_per_rack = 64;
  const Fabric fabric(spec);
  EXPECT_EQ(fabric.gpu_count(), 160u);
  EXPECT_EQ(fabric.domain_count(), 3u);
  for (std::uint32_t gpu = 0; gpu < 160; ++gpu) {
    EXPECT_EQ(fabric.domain_of({gpu}).value, gpu / 64) << gpu;
    EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), 900);
  }
  EXPECT_EQ(fabric.switch_hops({0}, {64}), 3);
  EXPECT_EQ(wires_between(fabric.graph(), Kind::gpu, Kind::nvswitch), 160u * 18);
}

TEST(BuildTopology, one_switch_joins_all_nics_at_full_rate_in_one_hop) {
  for (const char* preset : {"dgx-h100", "dgx-b300-superpod", "gb200-nvl72"}) {
    const Fabric fabric(with_network(preset, 40, NetworkKind::one_switch));
    const FabricGraph graph = fabric.graph();
    EXPECT_EQ(vertices_of(graph, Kind::leaf).size(), 1u) << preset;
    EXPECT_EQ(vertices_of(graph, Kind::spine).size(), 0u) << preset;
    const auto last = static_cast<std::uint32_t>(fabric.gpu_count() - 1);
    EXPECT_EQ(fabric.switch_hops({0}, {last}), 1) << preset;
    const double all = nic_rate(fabric, 0) * static_cast<double>(fabric.gpu_count()) / 2;
    EXPECT_DOUBLE_EQ(bisection(fabric, false), all) << preset;
  }
}

TEST(BuildTopology, a_plain_preset_with_the_network_superpod_is_the_superpod_preset) {
  Topology asked = build_topology(with_network("dgx-b300", 40, NetworkKind::superpod));
  const Topology named = build_topology(preset_spec("dgx-b300-superpod", 40));
  asked.name = named.name;
  EXPECT_TRUE(asked == named);
}

TEST(BuildTopology, rails_are_joined_by_nothing_but_pxn) {
  const Fabric apart(with_network("dgx-h100", 6, NetworkKind::rails));
  const Fabric relayed(with_network("dgx-h100", 6, NetworkKind::rails, true));
  EXPECT_EQ(vertices_of(apart.graph(), Kind::leaf).size(), 8u);
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 8; to < 48; ++to) {
      EXPECT_EQ(apart.reachable({from}, {to}), from == to % 8) << from << " to " << to;
      ASSERT_TRUE(relayed.reachable({from}, {to})) << from << " to " << to;
      EXPECT_EQ(relayed.switch_hops({from}, {to}), 1) << from << " to " << to;
    }
  }
  EXPECT_NE(refusal([&] { apart.route({0}, {9}); }), "accepted");
  EXPECT_EQ(names_along(relayed, 0, 9),
            (std::vector<std::string>{"NVLink out of GPU 0 on host 0", "NVLink into GPU 1 on host 0",
                                      "PCIe out of GPU 1 on host 0", "NIC out of GPU 1 on host 0",
                                      "NIC into GPU 1 on host 1", "PCIe into GPU 1 on host 1"}));
}

TEST(BuildTopology, pxn_takes_the_rail_that_the_receiver_listens_on_after_its_own_nic_failed) {
  for (const NetworkKind network : {NetworkKind::rails, NetworkKind::superpod}) {
    FabricSpec spec = with_network("dgx-h100-superpod", 4, network, true);
    spec.edits = {{.subject = FabricEdit::Subject::nic, .hosts = {1}, .gpus = {3}}};
    const Fabric fabric(spec);
    for (std::uint32_t from = 0; from < 8; ++from) {
      for (std::uint32_t to = 8; to < 16; ++to) {
        ASSERT_TRUE(fabric.reachable({from}, {to})) << from << " to " << to;
        EXPECT_EQ(fabric.switch_hops({from}, {to}), 1) << from << " to " << to;
        EXPECT_EQ(fabric.switch_hops({from + 16}, {to}), 1) << from << " to " << to;
      }
    }
  }
}

TEST(BuildTopology, pxn_relays_nothing_where_the_senders_own_nic_is_on_the_rail) {
  Topology topology;
  topology.types = {hgx_host({.gpus_per_nic = 2})};
  topology.blocks = {0, 0};
  Cabling cabling = rail_switches(2, 4);
  topology.network = cabling.network;
  topology.switch_of_nic = cabling.switch_of_nic;
  topology.routing.pxn = true;
  const Fabric fabric(topology);
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 8; to < 16; ++to) {
      const bool relayed = names_along(fabric, from, to)[0].starts_with("NVLink");
      EXPECT_EQ(relayed, from / 2 != (to - 8) / 2) << from << " to " << to;
    }
  }
}

TEST(BuildTopology, pxn_keeps_traffic_of_a_unit_below_its_leaves) {
  FabricSpec spec = preset_spec("dgx-h100-superpod", 64);
  EXPECT_EQ(Fabric(spec).switch_hops({0}, {8 + 5}), 3);
  spec.routing.pxn = true;
  EXPECT_EQ(Fabric(spec).switch_hops({0}, {8 + 5}), 1);
  EXPECT_EQ(Fabric(spec).switch_hops({0}, {32 * 8 + 5}), 3);
  spec.edits = {{.action = FabricEdit::Action::disable, .subject = FabricEdit::Subject::pxn}};
  EXPECT_EQ(Fabric(spec).switch_hops({0}, {8 + 5}), 3);
}

TEST(BuildTopology, parts_are_numbered_on_and_joined_by_exactly_the_stated_rate) {
  const Fabric fabric(joined({preset_spec("dgx-h100-superpod", 40), preset_spec("gb200-nvl72", 36)}, 123));
  EXPECT_EQ(fabric.host_count(), 76u);
  EXPECT_EQ(fabric.gpu_count(), 40u * 8 + 36u * 4);
  EXPECT_EQ(fabric.domain_count(), 40u + 2);
  EXPECT_EQ(fabric.host_of({40 * 8}).value, 40u);
  EXPECT_EQ(fabric.gpus_on({39}), 8u);
  EXPECT_EQ(fabric.gpus_on({40}), 4u);
  EXPECT_EQ(fabric.gpu_at({41}, 0).value, 40u * 8 + 4);
}

/// What GPUs of one half can send to those of the other at once, over the switches.
double flow_between(const Fabric& fabric, std::size_t first_nic_of_second) {
  const FabricGraph graph = fabric.graph();
  const auto nics = vertices_of(graph, Kind::nic);
  const auto border = nics.begin() + static_cast<std::ptrdiff_t>(first_nic_of_second);
  const auto capacity = [&](const FabricEdge& edge) {
    const bool network =
        graph.vertices[edge.from].kind >= Kind::nic && graph.vertices[edge.to].kind >= Kind::nic;
    return network ? edge.rate.value : 0;
  };
  return static_cast<double>(maximum_flow(graph, capacity, {nics.begin(), border}, {border, nics.end()})) *
         1e-9;
}

TEST(BuildTopology, the_link_between_parts_binds_at_its_rate_in_each_direction) {
  const Fabric fabric(joined({preset_spec("dgx-h100-superpod", 40), preset_spec("gb200-nvl72", 36)}, 123));
  EXPECT_DOUBLE_EQ(flow_between(fabric, 320), 123);
  const auto there = fabric.route({0}, {320}), back = fabric.route({320}, {0});
  const auto of_rate = [&](const std::vector<LinkId>& route) {
    std::vector<LinkId> found;
    for (const LinkId link : route) {
      if (fabric.links()[link.index()].nominal == gigabytes_per_second(123)) found.push_back(link);
    }
    return found;
  };
  // Each part has its end of the link, so a route between parts crosses two.
  ASSERT_EQ(of_rate(there).size(), 2u);
  ASSERT_EQ(of_rate(back).size(), 2u);
  for (const LinkId link : of_rate(there)) {
    EXPECT_THAT(back, Not(Contains(link)));
    EXPECT_THAT(fabric.route({319}, {320 + 143}), Contains(link));
  }
  for (const LinkId link : of_rate(back)) EXPECT_THAT(fabric.route({320 + 143}, {319}), Contains(link));
  EXPECT_EQ(of_rate(fabric.route({0}, {312})).size(), 0u);
  EXPECT_FALSE(vertices_of(fabric.graph(), Kind::gateway).empty());
}

TEST(BuildTopology, a_slow_link_between_parts_is_the_least_on_every_route_between_them) {
  const Fabric fabric(joined(
      {preset_spec("dgx-h100", 2), preset_spec("dgx-b300-superpod", 3), preset_spec("gb300-nvl72", 5)}, 3));
  const auto part_of = [](std::uint32_t gpu) { return gpu < 16 ? 0 : gpu < 40 ? 1 : 2; };
  for (std::uint32_t from = 0; from < 60; ++from) {
    for (std::uint32_t to = 0; to < 60; ++to) {
      if (from == to) continue;
      const double least = least_along(fabric, from, to);
      EXPECT_EQ(part_of(from) == part_of(to), least > 3) << from << " to " << to;
      EXPECT_GE(least, 3) << from << " to " << to;
    }
  }
}

TEST(BuildTopology, a_part_on_its_own_has_the_same_links_before_it_is_joined) {
  const Fabric alone = preset_fabric("dgx-h100-superpod", 40);
  const Fabric fabric(joined({preset_spec("dgx-h100-superpod", 40), preset_spec("gb200-nvl72", 36)}, 123));
  for (std::uint32_t gpu = 0; gpu < 320; gpu += 7) {
    EXPECT_DOUBLE_EQ(nic_rate(alone, gpu), nic_rate(fabric, gpu));
    EXPECT_EQ(alone.switch_hops({0}, {gpu}), fabric.switch_hops({0}, {gpu}));
  }
}

TEST(BuildTopology, refuses_bad_input_by_key_and_says_what_is_allowed) {
  const auto with = [](auto change) {
    FabricSpec spec = preset_spec("dgx-h100", 1);
    change(spec);
    return fabric_refusal(spec);
  };
  EXPECT_EQ(
      with([](FabricSpec& spec) { spec.preset = "dgx-h10"; }),
      "fabric.preset: found \"dgx-h10\"; allowed: dgx-h100, dgx-h200, dgx-b200, dgx-b300, dgx-h100-superpod, "
      "dgx-h200-superpod, dgx-b200-superpod, dgx-b300-superpod, gb200-nvl72, gb300-nvl72");
  EXPECT_EQ(with([](FabricSpec& spec) { spec.hosts = 0; }), "fabric.hosts: found 0; allowed: 1 to 65536");
  EXPECT_EQ(with([](FabricSpec& spec) { spec.hosts = 65'537; }),
            "fabric.hosts: found 65537; allowed: 1 to 65536");
  EXPECT_EQ(with([](FabricSpec& spec) { spec.nic_bandwidth = Bandwidth{0}; }),
            "fabric.nic_bandwidth: found 0 bytes per second; allowed: 1 MB/s to 10 TB/s");
  EXPECT_EQ(with([](FabricSpec& spec) { spec.nvlink_bandwidth = Bandwidth{-1}; }),
            "fabric.nvlink_bandwidth: found -1 bytes per second; allowed: 1 MB/s to 10 TB/s");
  EXPECT_THAT(with([](FabricSpec& spec) { spec.pcie_bandwidth = Bandwidth{10'000'000'000'001}; }),
              HasSubstr("fabric.pcie_bandwidth: found "));
  for (const double ratio : {0.0, 0.99, -1.0, 1e30, std::nan("")}) {
    EXPECT_THAT(with([&](FabricSpec& spec) { spec.oversubscription = ratio; }),
                HasSubstr("fabric.oversubscription: found "))
        << ratio;
  }
  EXPECT_THAT(with([](FabricSpec& spec) { spec.gpus_per_rack = 8; }),
              HasSubstr("fabric.gpus_per_rack: found "));
}

TEST(BuildTopology, refuses_racks_that_cannot_be_used_so) {
  for (const int gpus : {0, -4, 3, 6, 73, 76}) {
    FabricSpec spec = preset_spec("gb200-nvl72", 20);
    spec.gpus_per_rack = gpus;
    EXPECT_THAT(fabric_refusal(spec), HasSubstr("fabric.gpus_per_rack: found ")) << gpus;
  }
  for (const int gpus : {4, 64, 72}) {
    FabricSpec spec = preset_spec("gb200-nvl72", 20);
    spec.gpus_per_rack = gpus;
    EXPECT_EQ(fabric_refusal(spec), "accepted") << gpus;
  }
}

TEST(BuildTopology, refuses_oversubscription_where_no_leaves_have_up_links) {
  FabricSpec spec = preset_spec("dgx-h100-superpod", 64);
  spec.oversubscription = 2;
  EXPECT_EQ(fabric_refusal(spec), "accepted");
  for (const NetworkKind network : {NetworkKind::one_switch, NetworkKind::rails}) {
    spec.network = network;
    EXPECT_THAT(fabric_refusal(spec), HasSubstr("fabric.oversubscription: found "));
  }
}

TEST(BuildTopology, refuses_parts_by_the_key_of_the_part) {
  const FabricSpec good = joined({preset_spec("dgx-h100", 1), preset_spec("gb200-nvl72", 1)}, 10);
  EXPECT_EQ(fabric_refusal(good), "accepted");
  FabricSpec wrong = good;
  wrong.parts[1].hosts = 0;
  EXPECT_EQ(fabric_refusal(wrong), "fabric.parts.1.hosts: found 0; allowed: 1 to 65536");
  wrong = good;
  wrong.parts[0].preset = "dgx";
  EXPECT_THAT(fabric_refusal(wrong), HasSubstr("fabric.parts.0.preset: found \"dgx\""));
  wrong = good;
  wrong.join_bandwidth.reset();
  EXPECT_THAT(fabric_refusal(wrong), HasSubstr("fabric.join"));
  wrong = good;
  wrong.join_bandwidth = Bandwidth{0};
  EXPECT_THAT(fabric_refusal(wrong), HasSubstr("fabric.join"));
}

RC_GTEST_PROP(BuildTopology, equal_specifications_give_equal_topologies, ()) {
  const FabricSpec spec = *arbitrary_fabric_spec(60);
  RC_ASSERT(build_topology(spec) == build_topology(spec));
}

RC_GTEST_PROP(BuildTopology, stated_rates_are_those_of_the_links, ()) {
  FabricSpec spec = *arbitrary_part(30);
  spec.nic_bandwidth = gigabytes_per_second(*rc::gen::inRange(1, 500));
  spec.nvlink_bandwidth = gigabytes_per_second(*rc::gen::inRange(1, 2000));
  spec.pcie_bandwidth = gigabytes_per_second(600);
  const Fabric fabric(spec);
  const GpuId gpu = any_gpu(fabric);
  RC_ASSERT(fabric.links()[fabric.nvlink_out(gpu)->index()].nominal == *spec.nvlink_bandwidth);
  RC_ASSERT(fabric.links()[fabric.nvlink_in(gpu)->index()].nominal == *spec.nvlink_bandwidth);
  RC_ASSERT(nic_rate(fabric, gpu.value) <= static_cast<double>(spec.nic_bandwidth->value) * 1e-9);
}

RC_GTEST_PROP(BuildTopology, joined_parts_keep_their_hosts_gpus_and_domains, ()) {
  std::vector<FabricSpec> parts;
  std::size_t hosts = 0, gpus = 0, domains = 0;
  for (int count = *rc::gen::inRange(2, 4); count > 0; --count) {
    parts.push_back(*arbitrary_part(25));
    const Fabric alone(parts.back());
    hosts += alone.host_count();
    gpus += alone.gpu_count();
    domains += alone.domain_count();
  }
  const Fabric fabric(joined(parts, 77));
  RC_ASSERT(fabric.host_count() == hosts);
  RC_ASSERT(fabric.gpu_count() == gpus);
  RC_ASSERT(fabric.domain_count() == domains);
}

}  // namespace
}  // namespace isthmus::build_topology_test
