#include "model/fabric.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/error.hpp"
#include "model/fabric_graph.hpp"

namespace isthmus {
namespace {

using Kind = VertexKind;
using Vertices = std::vector<std::uint32_t>;

Fabric build(const std::string& preset, int hosts) { return Fabric(FabricSpec{preset, hosts, {}, {}}); }

Vertices vertices_of(const FabricGraph& graph, Kind kind) {
  Vertices found;
  for (std::uint32_t i = 0; i < graph.vertices.size(); ++i) {
    if (graph.vertices[i].kind == kind) found.push_back(i);
  }
  return found;
}

/// Whether the links, taken in order, are a walk of the graph from one vertex to the other.
bool is_walk(const FabricGraph& graph, const std::vector<LinkId>& route, std::uint32_t from,
             std::uint32_t to) {
  std::vector<FabricEdge> edges;
  for (const FabricEdge& edge : graph.edges) {
    if (std::find(route.begin(), route.end(), edge.link) != route.end()) edges.push_back(edge);
  }
  std::set<std::uint32_t> reached{from};
  for (const LinkId link : route) {
    std::set<std::uint32_t> next;
    for (int stage = 0; stage < 2; ++stage) {  // a NIC's links have two stages: slot and cable
      for (const FabricEdge& edge : edges) {
        const bool meets = reached.contains(edge.from) || next.contains(edge.from);
        if (edge.link == link && meets) next.insert(edge.to);
      }
    }
    reached = next;
  }
  return reached.contains(to);
}

/// Edges on the shortest path between two NICs over the switches alone.
int shortest_over_switches(const FabricGraph& graph, std::uint32_t from, std::uint32_t to) {
  std::vector<std::vector<std::uint32_t>> next(graph.vertices.size());
  for (const FabricEdge& edge : graph.edges) {
    if (graph.vertices[edge.from].kind >= Kind::nic && graph.vertices[edge.to].kind >= Kind::nic) {
      next[edge.from].push_back(edge.to);
    }
  }
  std::set<std::uint32_t> reached{from}, border{from};
  for (int steps = 0; !border.empty(); ++steps) {
    if (reached.contains(to)) return steps;
    std::set<std::uint32_t> beyond;
    for (const std::uint32_t vertex : border) beyond.insert(next[vertex].begin(), next[vertex].end());
    border = beyond;
    reached.insert(beyond.begin(), beyond.end());
  }
  return -1;
}

FabricSpec any_spec() {
  std::vector<std::string> names;
  for (const FabricPreset& preset : fabric_presets()) names.emplace_back(preset.name);
  // From 257 hosts (units of 32) and 289 (racks of 18) on there are cores.
  const auto hosts =
      rc::gen::oneOf(rc::gen::inRange(1, 40), rc::gen::resize(rc::kNominalSize * 3, rc::gen::inRange(1, 400)),
                     rc::gen::elementOf(std::vector<int>{1, 18, 32, 33, 256, 257, 288, 289}));
  return {*rc::gen::elementOf(names), *hosts, {}, {}};
}

GpuId any_gpu(const Fabric& fabric) {
  return {*rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(fabric.gpu_count()))};
}

std::vector<std::string> names_along(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  std::vector<std::string> names;
  for (const LinkId link : fabric.route({from}, {to})) names.push_back(fabric.links()[link.index()].name);
  return names;
}

TEST(Fabric, makes_one_nvlink_domain_of_all_72_gpus_of_a_rack_and_of_what_a_last_rack_holds) {
  const Fabric fabric = build("gb200-nvl72", 18 + 2);
  ASSERT_EQ(fabric.gpu_count(), 80u);
  EXPECT_EQ(fabric.domain_count(), 2u);
  for (std::uint32_t gpu = 0; gpu < 80; ++gpu) EXPECT_EQ(fabric.domain_of({gpu}).value, gpu < 72 ? 0u : 1u);
  EXPECT_EQ(build("dgx-h100-superpod", 5).domain_count(), 5u);
}

TEST(Fabric, names_links_in_plain_words_along_each_kind_of_route) {
  const Fabric fabric = build("dgx-h100-superpod", 9 * 32);
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
  EXPECT_EQ(names_along(build("gb200-nvl72", 19), 2, 72 + 2),
            (std::vector<std::string>{"C2C out of GPU 2 on host 0", "NIC out of GPU 2 on host 0",
                                      "leaf 2 of rack 0 up-links", "leaf 2 of rack 1 down-links",
                                      "NIC into GPU 2 on host 18", "C2C into GPU 2 on host 18"}));
}

TEST(Fabric, crosses_one_switch_on_a_rail_of_a_unit_three_over_a_spine_five_over_a_core) {
  const Fabric fabric = build("dgx-h100-superpod", 9 * 32);
  EXPECT_EQ(fabric.switch_hops({0}, {7}), 0);
  EXPECT_EQ(fabric.switch_hops({0}, {31 * 8}), 1);
  EXPECT_EQ(fabric.switch_hops({0}, {31 * 8 + 1}), 3);
  EXPECT_EQ(fabric.switch_hops({0}, {32 * 8}), 3);
  EXPECT_EQ(fabric.switch_hops({0}, {8 * 32 * 8}), 5);
  EXPECT_EQ(build("dgx-h100", 4).switch_hops({0}, {15}), 1);
}

TEST(Fabric, halving_the_nic_rate_halves_nic_links_only) {
  for (const FabricPreset& preset : fabric_presets()) {
    const FabricSpec spec{std::string(preset.name), 40, {}, {}};
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
  const Fabric fabric = build("dgx-h100-superpod", 16'384);
  EXPECT_EQ(fabric.gpu_count(), 131'072u);
  // Per host: 8 GPUs with NVLink, PCIe and a NIC each, 8 PCIe switches below 2 sockets; leaves, pods.
  EXPECT_EQ(fabric.links().size(), (6u * 8 + 2 * 8 + 2) * 16'384 + 2 * 4096 + 2 * 128);
  EXPECT_EQ(fabric.route({0}, {131'071}).size(), 8u);
  EXPECT_EQ(fabric.links().back().name, "spines of pod 127 down-links");
}

TEST(Fabric, refuses_bad_input_by_key_and_says_what_is_allowed) {
  const auto refusal = [](const FabricSpec& spec) -> std::string {
    try {
      Fabric fabric(spec);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(
      refusal({"dgx-h10", 1, {}, {}}),
      "fabric.preset: found \"dgx-h10\"; allowed: dgx-h100, dgx-h200, dgx-b200, dgx-b300, dgx-h100-superpod, "
      "dgx-h200-superpod, dgx-b200-superpod, dgx-b300-superpod, gb200-nvl72, gb300-nvl72");
  EXPECT_EQ(refusal({"dgx-h100", 0, {}, {}}), "fabric.hosts: found 0; allowed: 1 to 65536");
  EXPECT_EQ(refusal({"dgx-h100", 65'537, {}, {}}), "fabric.hosts: found 65537; allowed: 1 to 65536");
  EXPECT_EQ(refusal({"dgx-h100", 1, Bandwidth{0}, {}}),
            "fabric.nic_bandwidth: found 0 bytes per second; allowed: 1 MB/s to 10 TB/s");
  EXPECT_EQ(refusal({"dgx-h100", 1, {}, Bandwidth{-1}}),
            "fabric.nvlink_bandwidth: found -1 bytes per second; allowed: 1 MB/s to 10 TB/s");
}

RC_GTEST_PROP(Fabric, routes_are_walks_of_the_graph_from_gpu_to_gpu, ()) {
  const Fabric fabric(any_spec());
  const FabricGraph graph = fabric.graph();
  const Vertices gpus = vertices_of(graph, Kind::gpu);
  RC_ASSERT(gpus.size() == fabric.gpu_count());
  for (int pair = 0; pair < 3; ++pair) {
    const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
    const auto route = fabric.route(from, to);
    RC_ASSERT(is_walk(graph, route, gpus[from.index()], gpus[to.index()]));
    RC_ASSERT(route.empty() == (from == to));
    RC_ASSERT(std::set<LinkId>(route.begin(), route.end()).size() == route.size());
  }
}

RC_GTEST_PROP(Fabric, routes_keep_to_nvlink_inside_a_domain_and_else_use_both_gpus_own_nics, ()) {
  const Fabric fabric(any_spec());
  const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
  const auto route = fabric.route(from, to);
  RC_PRE(from != to);
  if (fabric.domain_of(from) == fabric.domain_of(to)) {
    RC_ASSERT(route == (std::vector<LinkId>{*fabric.nvlink_out(from), *fabric.nvlink_in(to)}));
    return;
  }
  RC_ASSERT(route[1] == *fabric.nic_out(from));
  RC_ASSERT(route[route.size() - 2] == *fabric.nic_in(to));
  for (const LinkId link : route) RC_ASSERT(fabric.links()[link.index()].link_class != LinkClass::nvlink);
}

RC_GTEST_PROP(Fabric, switch_hops_agree_with_a_search_over_the_whole_switch_graph, ()) {
  const Fabric fabric(any_spec());
  const FabricGraph graph = fabric.graph();
  const Vertices nics = vertices_of(graph, Kind::nic);
  const GpuId from = any_gpu(fabric), to = any_gpu(fabric);
  RC_PRE(fabric.domain_of(from) != fabric.domain_of(to));
  const int edges = shortest_over_switches(graph, nics[from.index()], nics[to.index()]);
  RC_ASSERT(fabric.switch_hops(from, to) == edges - 1);
  RC_ASSERT(static_cast<int>(fabric.route(from, to).size()) == 4 + (edges > 2 ? edges - 2 : 0));
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
}  // namespace isthmus
