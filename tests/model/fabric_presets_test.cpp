// What the presets are made of, against vendor tables and by maximum flow.

#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "model/fabric.hpp"
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

/// Wires from vertices of one kind to those of another.
std::uint32_t wires_between(const FabricGraph& graph, Kind from, Kind to) {
  std::uint32_t wires = 0;
  for (const FabricEdge& edge : graph.edges) {
    if (graph.vertices[edge.from].kind == from && graph.vertices[edge.to].kind == to) wires += edge.wires;
  }
  return wires;
}

/// The independent judge of capacity: maximum flow by push-relabel over the edges that `capacity` gives some.
std::int64_t maximum_flow(const FabricGraph& graph,
                          const std::function<std::int64_t(const FabricEdge&)>& capacity,
                          const Vertices& sources, const Vertices& sinks) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Reverse = boost::property<boost::edge_reverse_t, Traits::edge_descriptor>;
  using Residual = boost::property<boost::edge_residual_capacity_t, std::int64_t, Reverse>;
  using Capacity = boost::property<boost::edge_capacity_t, std::int64_t, Residual>;
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Capacity> flow(
      graph.vertices.size() + 2);
  const auto add = [&flow](std::size_t from, std::size_t to, std::int64_t amount) {
    const auto there = boost::add_edge(from, to, flow).first, back = boost::add_edge(to, from, flow).first;
    boost::put(boost::edge_capacity, flow, there, amount);
    boost::put(boost::edge_capacity, flow, back, 0);
    boost::put(boost::edge_reverse, flow, there, back);
    boost::put(boost::edge_reverse, flow, back, there);
  };
  for (const FabricEdge& edge : graph.edges) {
    if (const std::int64_t amount = capacity(edge); amount > 0) add(edge.from, edge.to, amount);
  }
  const std::size_t source = graph.vertices.size(), sink = source + 1;
  const std::int64_t unlimited = gigabytes_per_second(1000).value;
  for (const std::uint32_t vertex : sources) add(source, vertex, unlimited);
  for (const std::uint32_t vertex : sinks) add(vertex, sink, unlimited);
  return boost::push_relabel_max_flow(flow, source, sink);
}

/// What the NICs of the first half of the hosts (or of the even ones) can send to those of the others at
/// once.
std::int64_t bisection(const Fabric& fabric, bool interleaved) {
  const FabricGraph graph = fabric.graph();
  Vertices sources, sinks;
  const Vertices nics = vertices_of(graph, Kind::nic);
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const std::size_t host = i / fabric.gpus_on(HostId{0});
    const bool sends = interleaved ? host % 2 == 0 : host < fabric.host_count() / 2;
    (sends ? sources : sinks).push_back(nics[i]);
  }
  const auto scale_out = [&graph](std::uint32_t vertex) { return graph.vertices[vertex].kind >= Kind::nic; };
  return maximum_flow(
      graph,
      [&](const FabricEdge& edge) {
        return scale_out(edge.from) && scale_out(edge.to) ? edge.rate.value : 0;
      },
      sources, sinks);
}

TEST(FabricPresets, gives_each_h100_450_and_each_nvl72_gpu_900_gigabytes_per_second_per_direction) {
  for (const auto& [preset, rate] : std::map<std::string, double>{
           {"dgx-h100", 450}, {"dgx-h200", 450}, {"dgx-h100-superpod", 450}, {"gb200-nvl72", 900}}) {
    const Fabric fabric = build(preset, 2);
    for (std::uint32_t gpu = 0; gpu < fabric.gpu_count(); ++gpu) {
      EXPECT_EQ(fabric.links()[fabric.nvlink_out({gpu})->index()].nominal, gigabytes_per_second(rate));
      EXPECT_EQ(fabric.links()[fabric.nvlink_in({gpu})->index()].nominal, gigabytes_per_second(rate));
      EXPECT_EQ(fabric.links()[fabric.nic_out({gpu})->index()].nominal, gigabytes_per_second(50));
    }
  }
}

TEST(FabricPresets, wires_each_gpu_of_an_hgx_host_to_its_chips_by_4_5_5_4_and_144_in_all) {
  const FabricGraph graph = build("dgx-h100", 1).graph();
  EXPECT_EQ(wires_between(graph, Kind::gpu, Kind::nvswitch), 144u);
  EXPECT_EQ(wires_between(graph, Kind::nvswitch, Kind::gpu), 144u);
  std::map<std::uint32_t, std::vector<std::uint32_t>> bundles;
  for (const FabricEdge& edge : graph.edges) {
    if (graph.vertices[edge.to].kind != Kind::nvswitch) continue;
    bundles[edge.from].push_back(edge.wires);
    EXPECT_EQ(edge.rate, gigabytes_per_second(25) * edge.wires);
  }
  EXPECT_EQ(bundles.size(), 8u);
  for (const auto& [gpu, wires] : bundles) EXPECT_EQ(wires, (std::vector<std::uint32_t>{4, 5, 5, 4})) << gpu;
}

TEST(FabricPresets, puts_each_h100_and_its_nic_below_one_pcie_switch_four_of_them_per_socket) {
  const FabricGraph graph = build("dgx-h100", 1).graph();
  std::map<std::uint32_t, std::multiset<Kind>> below;
  for (const FabricEdge& edge : graph.edges) {
    const Kind kind = graph.vertices[edge.from].kind;
    if (kind == Kind::pcie_switch || kind == Kind::cpu) below[edge.from].insert(graph.vertices[edge.to].kind);
  }
  ASSERT_EQ(below.size(), 10u);
  for (const auto& [vertex, kinds] : below) {
    const bool socket = graph.vertices[vertex].kind == Kind::cpu;
    EXPECT_EQ(kinds.count(Kind::gpu), socket ? 0u : 1u);
    EXPECT_EQ(kinds.count(Kind::nic), socket ? 0u : 1u);
    EXPECT_EQ(kinds.count(Kind::pcie_switch), socket ? 4u : 0u);
  }
}

TEST(FabricPresets, has_the_published_superpod_counts_of_switches_and_cables) {
  struct Row {
    int units;
    std::size_t leaves, spines, cores;
    std::uint32_t host_cables, leaf_cables, spine_cables;
  };
  for (const Row& row :
       {Row{1, 8, 4, 0, 256, 256, 0}, Row{2, 16, 8, 0, 512, 512, 0}, Row{3, 24, 16, 0, 768, 768, 0},
        Row{4, 32, 16, 0, 1024, 1024, 0}, Row{8, 64, 32, 0, 2048, 2048, 0},
        Row{16, 128, 128, 64, 4096, 4096, 4096}, Row{32, 256, 256, 128, 8192, 8192, 8192},
        Row{64, 512, 512, 256, 16384, 16384, 16384}}) {
    const FabricGraph graph = build("dgx-h100-superpod", 32 * row.units).graph();
    EXPECT_EQ(vertices_of(graph, Kind::leaf).size(), row.leaves) << row.units;
    EXPECT_EQ(vertices_of(graph, Kind::spine).size(), row.spines) << row.units;
    EXPECT_EQ(vertices_of(graph, Kind::core).size(), row.cores) << row.units;
    EXPECT_EQ(wires_between(graph, Kind::nic, Kind::leaf), row.host_cables) << row.units;
    EXPECT_EQ(wires_between(graph, Kind::leaf, Kind::spine), row.leaf_cables) << row.units;
    EXPECT_EQ(wires_between(graph, Kind::spine, Kind::core), row.spine_cables) << row.units;
  }
}

TEST(FabricPresets, has_the_listed_counts_of_a_gb200_unit_of_eight_racks) {
  const FabricGraph graph = build("gb200-nvl72", 8 * 18).graph();
  EXPECT_EQ(wires_between(graph, Kind::gpu, Kind::nvswitch), 8u * 1296);
  EXPECT_EQ(vertices_of(graph, Kind::nvswitch).size(), 8u * 18);
  EXPECT_EQ(vertices_of(graph, Kind::leaf).size(), 32u);
  EXPECT_EQ(vertices_of(graph, Kind::spine).size(), 9u);
  EXPECT_EQ(wires_between(graph, Kind::nic, Kind::leaf), 576u);
  EXPECT_EQ(wires_between(graph, Kind::leaf, Kind::spine), 576u);
  for (const FabricEdge& edge : graph.edges) {
    if (graph.vertices[edge.to].kind != Kind::spine) continue;
    EXPECT_EQ(edge.wires, 2u);
  }
}

TEST(FabricPresets, carries_all_nics_at_once_between_the_halves_and_between_even_and_odd_hosts) {
  for (const auto& [preset, hosts] : std::vector<std::pair<std::string, int>>{{"dgx-h100", 6},
                                                                              {"dgx-h100-superpod", 64},
                                                                              {"dgx-h100-superpod", 96},
                                                                              {"dgx-h100-superpod", 512},
                                                                              {"gb200-nvl72", 144},
                                                                              {"gb200-nvl72", 432}}) {
    const Fabric fabric = build(preset, hosts);
    const std::int64_t half = static_cast<std::int64_t>(fabric.topology().switch_of_nic.size() / 2);
    EXPECT_EQ(bisection(fabric, false), (gigabytes_per_second(50) * half).value) << preset << " " << hosts;
    EXPECT_EQ(bisection(fabric, true), (gigabytes_per_second(50) * half).value) << preset << " " << hosts;
  }
}

TEST(FabricPresets, joins_each_pair_of_an_nvl72_by_18_disjoint_one_switch_paths) {
  const FabricGraph graph = build("gb200-nvl72", 18).graph();
  const Vertices gpus = vertices_of(graph, Kind::gpu);
  for (std::uint32_t a = 0; a < 72; ++a) {
    for (std::uint32_t b = 0; b < 72; ++b) {
      if (a == b) continue;
      // Only wires at the two ends count, so a unit of flow is a path over one chip.
      const auto wires = [&](const FabricEdge& edge) -> std::int64_t {
        const bool leaves = edge.from == gpus[a] && graph.vertices[edge.to].kind == Kind::nvswitch;
        const bool arrives = edge.to == gpus[b] && graph.vertices[edge.from].kind == Kind::nvswitch;
        return leaves || arrives ? edge.wires : 0;
      };
      EXPECT_EQ(maximum_flow(graph, wires, {gpus[a]}, {gpus[b]}), 18) << a << " to " << b;
    }
  }
}

RC_GTEST_PROP(FabricPresets, uses_no_more_than_64_ports_of_a_switch_and_cables_every_nic_once, ()) {
  const std::string preset = *rc::gen::element<std::string>("dgx-h100-superpod", "gb200-nvl72");
  const FabricGraph graph = build(preset, *rc::gen::inRange(1, 1500)).graph();
  std::vector<std::uint32_t> ports(graph.vertices.size());
  for (const FabricEdge& edge : graph.edges) {
    const Kind from = graph.vertices[edge.from].kind, to = graph.vertices[edge.to].kind;
    if (from > Kind::nic || to > Kind::nic) ports[edge.from] += edge.wires;
  }
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    if (graph.vertices[i].kind == Kind::nic) RC_ASSERT(ports[i] == 1u);
    if (graph.vertices[i].kind > Kind::nic) RC_ASSERT(ports[i] <= 64u);
  }
}

}  // namespace
}  // namespace isthmus
