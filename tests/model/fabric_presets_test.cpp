// What the presets are made of, against vendor tables and by maximum flow.

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/fabric_tools.hpp"

namespace isthmus {
namespace {

using Kind = VertexKind;
using Vertices = std::vector<std::uint32_t>;

struct Rates {
  std::string preset;
  double nvlink, nic;
  std::size_t gpus_per_host;
};

TEST(FabricPresets, give_each_gpu_its_published_nvlink_and_nic_per_direction) {
  const std::vector<Rates> rows{{"dgx-h100", 450, 50, 8},          {"dgx-h200", 450, 50, 8},
                                {"dgx-b200", 900, 50, 8},          {"dgx-b300", 900, 100, 8},
                                {"dgx-h100-superpod", 450, 50, 8}, {"dgx-h200-superpod", 450, 50, 8},
                                {"dgx-b200-superpod", 900, 50, 8}, {"dgx-b300-superpod", 900, 100, 8},
                                {"gb200-nvl72", 900, 50, 4},       {"gb300-nvl72", 900, 100, 4}};
  EXPECT_EQ(rows.size(), fabric_presets().size());
  for (const Rates& row : rows) {
    const Fabric fabric = preset_fabric(row.preset, 2);
    ASSERT_EQ(fabric.gpu_count(), 2 * row.gpus_per_host) << row.preset;
    for (std::uint32_t gpu = 0; gpu < fabric.gpu_count(); ++gpu) {
      EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), row.nvlink) << row.preset;
      EXPECT_DOUBLE_EQ(nic_rate(fabric, gpu), row.nic) << row.preset;
      EXPECT_EQ(fabric.exit_links({gpu}, true), std::vector{*fabric.nic_out({gpu})}) << row.preset;
      EXPECT_EQ(fabric.exit_links({gpu}, false), std::vector{*fabric.nic_in({gpu})}) << row.preset;
    }
  }
}

TEST(FabricPresets, wire_each_gpu_of_a_b200_or_b300_host_to_its_two_chips_by_nine) {
  for (const char* preset : {"dgx-b200", "dgx-b300", "dgx-b200-superpod", "dgx-b300-superpod"}) {
    const FabricGraph graph = preset_fabric(preset, 1).graph();
    EXPECT_EQ(vertices_of(graph, Kind::nvswitch).size(), 2u) << preset;
    EXPECT_EQ(wires_between(graph, Kind::gpu, Kind::nvswitch), 2u * 72) << preset;
    for (const FabricEdge& edge : graph.edges) {
      if (graph.vertices[edge.to].kind != Kind::nvswitch) continue;
      EXPECT_EQ(edge.wires, 9u) << preset;
      EXPECT_EQ(edge.rate, gigabytes_per_second(450)) << preset;
    }
  }
}

TEST(FabricPresets, wire_1296_nvlinks_in_a_rack_one_from_each_gpu_to_each_chip) {
  for (const char* preset : {"gb200-nvl72", "gb300-nvl72"}) {
    const FabricGraph graph = preset_fabric(preset, 18).graph();
    EXPECT_EQ(vertices_of(graph, Kind::nvswitch).size(), 18u) << preset;
    EXPECT_EQ(wires_between(graph, Kind::gpu, Kind::nvswitch), 1296u) << preset;
    EXPECT_EQ(wires_between(graph, Kind::nvswitch, Kind::gpu), 1296u) << preset;
    for (const FabricEdge& edge : graph.edges) {
      if (graph.vertices[edge.to].kind != Kind::nvswitch) continue;
      EXPECT_EQ(edge.rate, gigabytes_per_second(50)) << preset;
    }
  }
}

TEST(FabricPresets, wire_each_gpu_of_an_hgx_host_to_its_chips_by_4_5_5_4_and_144_in_all) {
  const FabricGraph graph = preset_fabric("dgx-h100", 1).graph();
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

TEST(FabricPresets, put_each_h100_and_its_nic_below_one_pcie_switch_four_of_them_per_socket) {
  const FabricGraph graph = preset_fabric("dgx-h100", 1).graph();
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

TEST(FabricPresets, have_the_published_superpod_counts_of_switches_and_cables) {
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
    const FabricGraph graph = preset_fabric("dgx-h100-superpod", 32 * row.units).graph();
    EXPECT_EQ(vertices_of(graph, Kind::leaf).size(), row.leaves) << row.units;
    EXPECT_EQ(vertices_of(graph, Kind::spine).size(), row.spines) << row.units;
    EXPECT_EQ(vertices_of(graph, Kind::core).size(), row.cores) << row.units;
    EXPECT_EQ(wires_between(graph, Kind::nic, Kind::leaf), row.host_cables) << row.units;
    EXPECT_EQ(wires_between(graph, Kind::leaf, Kind::spine), row.leaf_cables) << row.units;
    EXPECT_EQ(wires_between(graph, Kind::spine, Kind::core), row.spine_cables) << row.units;
  }
}

TEST(FabricPresets, have_the_listed_counts_of_a_gb200_unit_of_eight_racks) {
  const FabricGraph graph = preset_fabric("gb200-nvl72", 8 * 18).graph();
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

TEST(FabricPresets, have_the_published_counts_of_a_b300_superpod) {
  struct Row {
    int hosts;
    std::size_t leaves, spines;
    std::uint32_t cables;
  };
  for (const Row& row : {Row{64, 16, 8, 512}, Row{128, 32, 16, 1024}, Row{256, 64, 32, 2048}}) {
    const FabricGraph graph = preset_fabric("dgx-b300-superpod", row.hosts).graph();
    EXPECT_EQ(vertices_of(graph, Kind::leaf).size(), row.leaves) << row.hosts;
    EXPECT_EQ(vertices_of(graph, Kind::spine).size(), row.spines) << row.hosts;
    EXPECT_EQ(wires_between(graph, Kind::nic, Kind::leaf), row.cables) << row.hosts;
    EXPECT_EQ(wires_between(graph, Kind::leaf, Kind::spine), row.cables) << row.hosts;
  }
}

TEST(FabricPresets, have_the_published_wires_per_leaf_and_spine_in_one_to_four_units) {
  for (const auto& [units, wires] : {std::pair{1, 8u}, {2, 4u}, {3, 2u}, {4, 2u}}) {
    const FabricGraph graph = preset_fabric("dgx-h100-superpod", 32 * units).graph();
    std::map<std::uint32_t, std::uint32_t> ports;
    for (const FabricEdge& edge : graph.edges) {
      if (graph.vertices[edge.to].kind != Kind::spine) continue;
      EXPECT_EQ(edge.wires, wires) << units;
      ports[edge.to] += edge.wires;
    }
    for (const auto& [spine, used] : ports) EXPECT_EQ(used, units == 3 ? 48u : 64u) << units;
  }
}

TEST(FabricPresets, carry_all_nics_at_once_between_the_halves_and_between_even_and_odd_hosts) {
  struct Row {
    std::string preset;
    int hosts;
    double nic;
    int nics_per_host;
  };
  for (const Row& row :
       {Row{"dgx-h100", 6, 50, 8}, Row{"dgx-h100-superpod", 64, 50, 8}, Row{"dgx-h100-superpod", 96, 50, 8},
        Row{"dgx-h100-superpod", 512, 50, 8}, Row{"dgx-b300-superpod", 128, 100, 8},
        Row{"dgx-b200-superpod", 128, 50, 8}, Row{"gb200-nvl72", 144, 50, 4}, Row{"gb200-nvl72", 432, 50, 4},
        Row{"gb300-nvl72", 72, 100, 4}}) {
    const Fabric fabric = preset_fabric(row.preset, row.hosts);
    const double all = row.nic * row.nics_per_host * row.hosts / 2;
    EXPECT_DOUBLE_EQ(bisection(fabric, false), all) << row.preset << " " << row.hosts;
    EXPECT_DOUBLE_EQ(bisection(fabric, true), all) << row.preset << " " << row.hosts;
  }
}

TEST(FabricPresets, carry_by_their_oversubscription_less_between_units_and_all_of_it_inside) {
  for (const auto& [ratio, wires] : {std::pair{2.0, 16}, {1.5, 21}, {4.0, 8}, {1.0, 32}, {40.0, 1}}) {
    FabricSpec spec = preset_spec("dgx-h100-superpod", 64);
    spec.oversubscription = ratio;
    const Fabric fabric(spec);
    EXPECT_DOUBLE_EQ(rate_named(fabric, "leaf 5 of unit 1 up-links"), wires * 50) << ratio;
    EXPECT_DOUBLE_EQ(bisection(fabric, false), 8 * wires * 50) << ratio;
  }
  FabricSpec rack = preset_spec("gb200-nvl72", 144);
  rack.oversubscription = 2;
  EXPECT_DOUBLE_EQ(rate_named(Fabric(rack), "leaf 3 of rack 7 up-links"), 9 * 50);
}

TEST(FabricPresets, join_each_pair_of_an_nvl72_by_18_disjoint_one_switch_paths) {
  const FabricGraph graph = preset_fabric("gb200-nvl72", 18).graph();
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

RC_GTEST_PROP(FabricPresets, use_no_more_than_64_ports_of_a_switch_and_cables_every_nic_once, ()) {
  const std::string preset = *rc::gen::element<std::string>("dgx-h100-superpod", "gb200-nvl72");
  FabricSpec spec = preset_spec(preset, *rc::gen::inRange(1, 1500));
  spec.oversubscription = *rc::gen::element(1.0, 1.5, 2.0, 3.0);
  const FabricGraph graph = Fabric(spec).graph();
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
