#include "model/fabric.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/fabric_generator.hpp"
#include "tests/support/fabric_tools.hpp"

namespace isthmus::fabric_test {
namespace {

using Kind = VertexKind;

FabricSpec any_spec() {
  std::vector<std::string> names;
  for (const FabricPreset& preset : fabric_presets()) names.emplace_back(preset.name);
  // From 257 hosts (units of 32) and 289 (racks of 18) on there are cores.
  const auto hosts =
      rc::gen::oneOf(rc::gen::inRange(1, 40), rc::gen::resize(rc::kNominalSize * 3, rc::gen::inRange(1, 400)),
                     rc::gen::elementOf(std::vector<int>{1, 18, 32, 33, 256, 257, 288, 289}));
  return preset_spec(*rc::gen::elementOf(names), *hosts);
}

TEST(Fabric, makes_one_nvlink_domain_of_all_72_gpus_of_a_rack_and_of_what_a_last_rack_holds) {
  const Fabric fabric = preset_fabric("gb200-nvl72", 18 + 2);
  ASSERT_EQ(fabric.gpu_count(), 80u);
  EXPECT_EQ(fabric.domain_count(), 2u);
  for (std::uint32_t gpu = 0; gpu < 80; ++gpu) EXPECT_EQ(fabric.domain_of({gpu}).value, gpu < 72 ? 0u : 1u);
  EXPECT_EQ(preset_fabric("dgx-h100-superpod", 5).domain_count(), 5u);
}

TEST(Fabric, names_links_in_plain_words_along_each_kind_of_route) {
  const Fabric fabric = preset_fabric("dgx-h100-superpod", 9 * 32);
  EXPECT_EQ(names_along(fabric, 1, 3),
            (std::vector<std::string>{"NVLink out of GPU 1 on host 0", "NVLink into GPU 3 on host 0"}));
  EXPECT_EQ(names_along(fabric, 3, 8 * 12 + 3),
            (std::vector<std::string>{"PCIe out of GPU 3 on host 0", "NIC out of GPU 3 on host 0",
                                      "NIC into GPU 3 on host 12", "PCIe into GPU 3 on host 12"}));
  EXPECT_EQ(names_along(fabric, 3, 8 * 256),
            (std::vector<std::string>{"PCIe out of GPU 3 on host 0", "NIC out of GPU 3 on host 0",
                                      "leaf 3 of unit 0 up-links", "spines of pod 0 up-links",
                                      "spines of pod 2 down-links", "leaf 0 of unit 8 down-links",
                                      "NIC into GPU 0 on host 256", "PCIe into GPU 0 on host 256"}));
  EXPECT_EQ(names_along(preset_fabric("gb200-nvl72", 19), 2, 72 + 2),
            (std::vector<std::string>{"C2C out of GPU 2 on host 0", "NIC out of GPU 2 on host 0",
                                      "leaf 2 of rack 0 up-links", "leaf 2 of rack 1 down-links",
                                      "NIC into GPU 2 on host 18", "C2C into GPU 2 on host 18"}));
}

TEST(Fabric, crosses_one_switch_on_a_rail_of_a_unit_three_over_a_spine_five_over_a_core) {
  const Fabric fabric = preset_fabric("dgx-h100-superpod", 9 * 32);
  EXPECT_EQ(fabric.switch_hops({0}, {7}), 0);
  EXPECT_EQ(fabric.switch_hops({0}, {31 * 8}), 1);
  EXPECT_EQ(fabric.switch_hops({0}, {31 * 8 + 1}), 3);
  EXPECT_EQ(fabric.switch_hops({0}, {32 * 8}), 3);
  EXPECT_EQ(fabric.switch_hops({0}, {8 * 32 * 8}), 5);
  EXPECT_EQ(preset_fabric("dgx-h100", 4).switch_hops({0}, {15}), 1);
}

TEST(Fabric, halving_the_nic_rate_halves_nic_links_only) {
  for (const FabricPreset& preset : fabric_presets()) {
    const FabricSpec spec = preset_spec(std::string(preset.name), 40);
    FabricSpec halved = spec;
    const Fabric whole(spec);
    const Bandwidth nic = whole.links()[whole.nic_out({0})->index()].nominal;
    halved.nic_bandwidth = Bandwidth{nic.value / 2};
    const Fabric half(halved);
    ASSERT_EQ(whole.links().size(), half.links().size());
    for (std::size_t i = 0; i < whole.links().size(); ++i) {
      const Link &before = whole.links()[i], &after = half.links()[i];
      EXPECT_EQ(after.nominal.value * (before.link_class == LinkClass::nic ? 2 : 1), before.nominal.value);
      EXPECT_EQ(after.name, before.name);
    }
  }
}

TEST(Fabric, builds_131072_gpus_with_dense_links) {
  const Fabric fabric = preset_fabric("dgx-h100-superpod", 16'384);
  EXPECT_EQ(fabric.gpu_count(), 131'072u);
  // Per host: 8 GPUs with NVLink, PCIe and a NIC each, 8 PCIe switches below 2 sockets; leaves, pods.
  EXPECT_EQ(fabric.links().size(), (6u * 8 + 2 * 8 + 2) * 16'384 + 2 * 4096 + 2 * 128);
  EXPECT_EQ(fabric.route({0}, {131'071}).size(), 8u);
  EXPECT_EQ(fabric.links().back().name, "spines of pod 127 down-links");
}

RC_GTEST_PROP(Fabric, routes_are_walks_of_the_graph_from_gpu_to_gpu, ()) {
  const Fabric fabric(any_spec());
  const FabricGraph graph = fabric.graph();
  const auto gpus = vertices_of(graph, Kind::gpu);
  RC_ASSERT(gpus.size() == fabric.gpu_count());
  for (int pair = 0; pair < 3; ++pair) {
    const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
    const auto route = fabric.route(from, to);
    RC_ASSERT(is_walk(graph, route, gpus[from.index()], gpus[to.index()]));
    RC_ASSERT(route.empty() == (from == to));
    RC_ASSERT(std::set<LinkId>(route.begin(), route.end()).size() == route.size());
  }
}

RC_GTEST_PROP(Fabric, every_route_of_a_damaged_machine_is_a_walk_too, ()) {
  const Fabric fabric(*arbitrary_topology(40, 6));
  const FabricGraph graph = fabric.graph();
  const auto gpus = vertices_of(graph, Kind::gpu);
  RC_ASSERT(gpus.size() == fabric.gpu_count());
  for (int pair = 0; pair < 10; ++pair) {
    const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
    if (!fabric.reachable(from, to)) continue;
    const auto route = fabric.route(from, to);
    for (const LinkId link : route) RC_ASSERT(link.index() < fabric.links().size());
    RC_ASSERT(is_walk(graph, route, gpus[from.index()], gpus[to.index()]));
    RC_ASSERT(route == fabric.route(from, to));
  }
}

/// Whether a way leads over the two GPUs' own NICs, by a search over the switches.
bool own_nics_meet(const Fabric& fabric, const FabricGraph& graph, GpuId from, GpuId to) {
  const auto out = fabric.nic_out(from), in = fabric.nic_in(to);
  if (!out || !in) return false;
  const auto first = switch_beside(graph, *out), last = switch_beside(graph, *in);
  return first && last && fewest_switches(graph, *first, *last);
}

RC_GTEST_PROP(Fabric, exactly_what_nvlink_the_host_or_the_switches_join_is_reachable, ()) {
  const Fabric fabric(*arbitrary_topology(30, 6));
  const FabricGraph graph = fabric.graph();
  for (int pair = 0; pair < 5; ++pair) {
    const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
    const bool near =
        fabric.domain_of(from) == fabric.domain_of(to) || fabric.host_of(from) == fabric.host_of(to);
    bool joined = near || own_nics_meet(fabric, graph, from, to);
    if (!near && fabric.topology().routing.pxn) {
      // PXN decides by rail alone, whether or not that rail's leaf leads on: only one way of the judgement.
      const HostId host = fabric.host_of(from);
      for (std::size_t local = 0; local < fabric.gpus_on(host); ++local) {
        joined = joined || own_nics_meet(fabric, graph, fabric.gpu_at(host, local), to);
      }
      RC_ASSERT(joined || !fabric.reachable(from, to));
      continue;
    }
    RC_ASSERT(fabric.reachable(from, to) == joined);
    RC_ASSERT((refusal([&] { fabric.route(from, to); }) == "accepted") == joined);
    RC_ASSERT((refusal([&] { fabric.switch_hops(from, to); }) == "accepted") == joined);
  }
}

/// The network ports that a route leaves and enters through; empty inside a host or domain.
std::vector<LinkId> ports_along(const Fabric& fabric, GpuId from, GpuId to) {
  std::vector<LinkId> ports;
  for (const LinkId link : fabric.route(from, to)) {
    if (fabric.links()[link.index()].link_class == LinkClass::nic) ports.push_back(link);
  }
  return ports;
}

RC_GTEST_PROP(Fabric, switch_hops_agree_with_a_search_over_the_whole_switch_graph, ()) {
  const bool damaged = *rc::gen::arbitrary<bool>();
  const Fabric fabric = damaged ? Fabric(*arbitrary_topology(40, 6)) : Fabric(any_spec());
  const FabricGraph graph = fabric.graph();
  const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
  RC_PRE(fabric.reachable(from, to));
  const auto ports = ports_along(fabric, from, to);
  if (ports.empty()) {
    RC_ASSERT(fabric.switch_hops(from, to) == 0);
    return;
  }
  RC_ASSERT(ports.size() == 2u);
  const auto first = switch_beside(graph, ports[0]), last = switch_beside(graph, ports[1]);
  RC_ASSERT(fewest_switches(graph, first.value(), last.value()) == fabric.switch_hops(from, to));
}

RC_GTEST_PROP(Fabric, routes_keep_to_nvlink_inside_a_domain_and_to_pcie_inside_a_host, ()) {
  const Fabric fabric(*arbitrary_topology(30, 6));
  const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
  RC_PRE(from != to && fabric.reachable(from, to));
  const bool same_domain = fabric.domain_of(from) == fabric.domain_of(to);
  const auto route = fabric.route(from, to);
  std::set<LinkClass> classes;
  for (const LinkId link : route) classes.insert(fabric.links()[link.index()].link_class);
  if (same_domain) {
    RC_ASSERT(classes == std::set<LinkClass>{LinkClass::nvlink});
    RC_ASSERT(route.front() == *fabric.nvlink_out(from));
    RC_ASSERT(route.back() == *fabric.nvlink_in(to));
  } else if (fabric.host_of(from) == fabric.host_of(to)) {
    RC_ASSERT(classes == std::set<LinkClass>{LinkClass::pcie});
  } else {
    const auto ports = ports_along(fabric, from, to);
    RC_ASSERT(ports.size() == 2u);
    RC_ASSERT(ports[1] == *fabric.nic_in(to));
    RC_ASSERT(ports[0] == *fabric.nic_out(from) || fabric.topology().routing.pxn);
    RC_ASSERT(!classes.contains(LinkClass::nvlink) || fabric.topology().routing.pxn);
  }
}

RC_GTEST_PROP(Fabric, links_have_names_of_their_own, ()) {
  const Fabric fabric(*arbitrary_topology(40, 6));
  RC_ASSERT(rates_by_name(fabric).size() == fabric.links().size());
  for (const Link& link : fabric.links()) RC_ASSERT(link.nominal.value > 0);
}

/// First host, GPU and NIC of each block, and the ends.
struct BlockStarts {
  explicit BlockStarts(const Topology& topology) {
    for (const std::uint32_t type : topology.blocks) {
      const Block& block = topology.types[type];
      host.push_back(host.back() + block.hosts);
      gpu.push_back(gpu.back() + static_cast<std::uint32_t>(block.gpus.size()));
      nic.push_back(nic.back() + static_cast<std::uint32_t>(block.nics.size()));
    }
  }
  std::vector<std::uint32_t> host{0}, gpu{0}, nic{0};
};

/// Numbers of two equally long ranges exchanged.
std::uint32_t exchanged(const std::vector<std::uint32_t>& starts, std::size_t a, std::size_t b,
                        std::uint32_t number) {
  if (number >= starts[a] && number < starts[a + 1]) return number - starts[a] + starts[b];
  if (number >= starts[b] && number < starts[b + 1]) return number - starts[b] + starts[a];
  return number;
}

std::vector<std::string> renamed(std::vector<std::string> names, const BlockStarts& starts, std::size_t a,
                                 std::size_t b) {
  const std::string_view before = " on host ";
  for (std::string& name : names) {
    const std::size_t found = name.rfind(before);
    if (found == std::string::npos) continue;
    const std::size_t digits = found + before.size();
    const auto host = static_cast<std::uint32_t>(std::stoul(name.substr(digits)));
    name = name.substr(0, digits) + std::to_string(exchanged(starts.host, a, b, host));
  }
  return names;
}

RC_GTEST_PROP(Fabric, exchanging_two_hosts_or_racks_changes_names_and_nothing_else, ()) {
  Topology topology = *arbitrary_topology(60, 6);
  topology.routing.hashed = false;  // the hash sees the numbers of a pair
  const auto last = static_cast<int>(topology.blocks.size()) - 1;
  const auto a = static_cast<std::size_t>(*rc::gen::inRange(0, last + 1));
  const auto b = static_cast<std::size_t>(*rc::gen::inRange(0, last + 1));
  const Block &one = topology.types[topology.blocks[a]], &other = topology.types[topology.blocks[b]];
  RC_PRE(one.hosts == other.hosts && one.gpus.size() == other.gpus.size());
  RC_PRE(one.nics.size() == other.nics.size());
  const BlockStarts starts(topology);
  Topology swapped = topology;
  std::swap(swapped.blocks[a], swapped.blocks[b]);
  for (std::size_t nic = 0; nic < topology.switch_of_nic.size(); ++nic) {
    swapped.switch_of_nic[exchanged(starts.nic, a, b, static_cast<std::uint32_t>(nic))] =
        topology.switch_of_nic[nic];
  }
  const Fabric before(topology), after(swapped);
  RC_ASSERT(before.links().size() == after.links().size());
  for (int pair = 0; pair < 5; ++pair) {
    const std::uint32_t from = any_gpu(before).value, to = any_gpu(before).value;
    const std::uint32_t new_from = exchanged(starts.gpu, a, b, from),
                        new_to = exchanged(starts.gpu, a, b, to);
    RC_ASSERT(before.reachable({from}, {to}) == after.reachable({new_from}, {new_to}));
    if (!before.reachable({from}, {to})) continue;
    RC_ASSERT(renamed(names_along(before, from, to), starts, a, b) == names_along(after, new_from, new_to));
    RC_ASSERT(before.switch_hops({from}, {to}) == after.switch_hops({new_from}, {new_to}));
    RC_ASSERT(from == to || least_along(before, from, to) == least_along(after, new_from, new_to));
  }
}

RC_GTEST_PROP(Fabric, routes_back_are_as_long_and_cross_the_same_classes_in_reverse, ()) {
  const Fabric fabric(any_spec());
  const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
  const auto classes = [&](GpuId a, GpuId b) {
    std::vector<LinkClass> along;
    for (const LinkId link : fabric.route(a, b)) along.push_back(fabric.links()[link.index()].link_class);
    return along;
  };
  auto back = classes(to, from);
  std::reverse(back.begin(), back.end());
  RC_ASSERT(classes(from, to) == back);
}

RC_GTEST_PROP(Fabric, a_link_has_the_rate_of_its_wires, ()) {
  FabricSpec spec = any_spec();
  const auto any_rate = rc::gen::map(rc::gen::inRange<std::int64_t>(1'000'000, 2'000'000'000'000),
                                     [](std::int64_t value) { return Bandwidth{value}; });
  spec.nvlink_bandwidth = *any_rate;
  spec.nic_bandwidth = *any_rate;
  const Fabric fabric(spec);
  const FabricGraph graph = fabric.graph();
  std::vector<std::int64_t> sum(fabric.links().size()),
      least(fabric.links().size(), spec.nic_bandwidth->value);
  for (const FabricEdge& edge : graph.edges) {
    sum[edge.link.index()] += edge.rate.value;
    least[edge.link.index()] = std::min(least[edge.link.index()], edge.rate.value);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const Link& link = fabric.links()[i];
    RC_ASSERT(link.nominal.value == (link.link_class == LinkClass::nic ? least[i] : sum[i]));
  }
}

RC_GTEST_PROP(Fabric, numbers_gpus_host_after_host, ()) {
  const Fabric fabric(any_spec());
  const GpuId gpu = any_gpu(fabric);
  const HostId host = fabric.host_of(gpu);
  RC_ASSERT(fabric.gpu_at(host, gpu.index() % fabric.gpus_on(host)) == gpu);
  RC_ASSERT(fabric.host_count() * fabric.gpus_on(host) == fabric.gpu_count());
  RC_ASSERT(fabric.domain_of(fabric.gpu_at(host, 0)) == fabric.domain_of(gpu));
}

}  // namespace
}  // namespace isthmus::fabric_test
