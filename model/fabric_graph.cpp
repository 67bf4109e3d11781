// Links and vertices by name: the parts, multiplied out.

#include "model/fabric_graph.hpp"

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_parts.hpp"

namespace isthmus {
namespace {

std::string_view display_name(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu: return "GPU";
    case VertexKind::nvswitch: return "NVSwitch chip";
    case VertexKind::pcie_switch: return "PCIe switch";
    case VertexKind::cpu: return "CPU socket";
    case VertexKind::nic: return "NIC";
    case VertexKind::leaf: return "leaf";
    case VertexKind::spine: return "spine";
    case VertexKind::core: return "core";
    case VertexKind::gateway: return "gateway";
  }
  ISTHMUS_ASSERT(false, "vertex kind {}", static_cast<int>(kind));
  return {};
}

std::string leaf_name(const PartNetwork& network, std::uint32_t leaf) {
  return fmt::format("leaf {} of {} {}", leaf % network.leaves_per_group, network.group_name,
                     leaf / network.leaves_per_group);
}

void add_gpu_links(const PartBlock& block, std::uint32_t first_host, std::vector<Link>& links) {
  for (std::uint32_t gpu = 0; gpu < block.gpus(); ++gpu) {
    const auto add = [&](std::string_view what, std::string_view way, LinkClass link_class, Bandwidth rate) {
      links.push_back({fmt::format("{} {} GPU {} on host {}", what, way, gpu % block.gpus_per_host,
                                   first_host + gpu / block.gpus_per_host),
                       link_class, rate});
    };
    // The order of PortLink.
    add("NVLink", "out of", LinkClass::nvlink, block.nvlink);
    add("NVLink", "into", LinkClass::nvlink, block.nvlink);
    add(block.pcie_name, "out of", LinkClass::pcie, block.pcie);
    add(block.pcie_name, "into", LinkClass::pcie, block.pcie);
    add("NIC", "out of", LinkClass::nic, block.nic);
    add("NIC", "into", LinkClass::nic, block.nic);
  }
}

/// Vertex numbers at which the parts of the network begin.
struct NetworkVertices {
  std::uint32_t leaves = 0, spines = 0, cores = 0;
};

void add_block(const FabricParts& parts, std::uint32_t number, FabricGraph& graph) {
  const PartBlock& block = parts.block_at(number);
  const auto first_vertex = static_cast<std::uint32_t>(graph.vertices.size());
  const std::uint32_t first_host = number * parts.block.hosts;
  const std::uint32_t first_link = number * parts.block.links();
  for (const PartVertex& vertex : block.vertices) {
    const std::string owner = vertex.host ? fmt::format("on host {}", first_host + *vertex.host)
                                          : fmt::format("of rack {}", number);
    graph.vertices.push_back(
        {vertex.kind, fmt::format("{} {} {}", display_name(vertex.kind), vertex.index, owner)});
  }
  for (FabricEdge edge : block.edges) {
    edge.from += first_vertex;
    edge.to += first_vertex;
    if (edge.link) edge.link->value += first_link;
    graph.edges.push_back(edge);
  }
}

void add_cables(const FabricParts& parts, std::uint32_t number, std::uint32_t first_vertex,
                std::uint32_t first_leaf, FabricGraph& graph) {
  const PartBlock& block = parts.block_at(number);
  for (std::uint32_t nic = 0; nic < block.gpus(); ++nic) {
    const std::uint32_t host = number * parts.block.hosts + nic / block.gpus_per_host;
    const std::uint32_t leaf = first_leaf + parts.network.leaf_of(host, nic % block.gpus_per_host);
    const std::uint32_t vertex = first_vertex + block.nic_vertices[nic];
    const std::uint32_t link = number * parts.block.links() + nic * PortLink::count;
    graph.edges.push_back({vertex, leaf, 1, block.nic, LinkId{link + PortLink::nic_out}});
    graph.edges.push_back({leaf, vertex, 1, block.nic, LinkId{link + PortLink::nic_in}});
  }
}

NetworkVertices add_switches(const PartNetwork& network, FabricGraph& graph) {
  const auto next = [&] { return static_cast<std::uint32_t>(graph.vertices.size()); };
  NetworkVertices first;
  first.leaves = next();
  for (std::uint32_t leaf = 0; leaf < network.leaves; ++leaf) {
    graph.vertices.push_back({VertexKind::leaf, leaf_name(network, leaf)});
  }
  first.spines = next();
  for (std::uint32_t spine = 0; spine < network.spines(); ++spine) {
    const std::uint32_t index = spine % network.spines_per_pod, pod = spine / network.spines_per_pod;
    graph.vertices.push_back({VertexKind::spine, fmt::format("spine {} of pod {}", index, pod)});
  }
  first.cores = next();
  for (std::uint32_t core = 0; core < network.cores(); ++core) {
    graph.vertices.push_back({VertexKind::core, fmt::format("core {}", core)});
  }
  return first;
}

void add_bundle(std::uint32_t low, std::uint32_t high, std::uint32_t wires, Bandwidth wire,
                std::uint32_t up_link, FabricGraph& graph) {
  graph.edges.push_back({low, high, wires, wire * wires, LinkId{up_link}});
  graph.edges.push_back({high, low, wires, wire * wires, LinkId{up_link + 1}});
}

void add_bundles(const FabricParts& parts, const NetworkVertices& first, FabricGraph& graph) {
  const PartNetwork& network = parts.network;
  for (std::uint32_t leaf = 0; leaf < network.leaves; ++leaf) {
    for (std::uint32_t index = 0; index < network.spines_per_pod; ++index) {
      const std::uint32_t spine = network.pod_of(leaf) * network.spines_per_pod + index;
      add_bundle(first.leaves + leaf, first.spines + spine, network.leaf_spine_wires, network.wire,
                 parts.leaf_link(leaf), graph);
    }
  }
  for (std::uint32_t spine = 0; spine < network.spines(); ++spine) {
    for (std::uint32_t i = 0; i < network.cores_per_spine; ++i) {
      const std::uint32_t core = spine % network.spines_per_pod * network.cores_per_spine + i;
      add_bundle(first.spines + spine, first.cores + core, network.spine_core_wires, network.wire,
                 parts.pod_link(spine / network.spines_per_pod), graph);
    }
  }
}

}  // namespace

std::vector<Link> make_links(const FabricParts& parts) {
  const PartNetwork& network = parts.network;
  std::vector<Link> links;
  links.reserve(parts.pod_link(network.pods));
  for (std::uint32_t number = 0; number < parts.blocks(); ++number) {
    add_gpu_links(parts.block_at(number), number * parts.block.hosts, links);
  }
  const auto add_both = [&](const std::string& what, std::int64_t wires) {
    links.push_back({what + " up-links", LinkClass::switch_uplink, network.wire * wires});
    links.push_back({what + " down-links", LinkClass::switch_uplink, network.wire * wires});
  };
  if (network.spines() == 0) return links;
  for (std::uint32_t leaf = 0; leaf < network.leaves; ++leaf) {
    add_both(leaf_name(network, leaf), std::int64_t{network.spines_per_pod} * network.leaf_spine_wires);
  }
  if (network.cores() == 0) return links;
  for (std::uint32_t pod = 0; pod < network.pods; ++pod) {
    add_both(fmt::format("spines of pod {}", pod), std::int64_t{network.cores()} * network.spine_core_wires);
  }
  return links;
}

FabricGraph expand(const FabricParts& parts) {
  FabricGraph graph;
  for (std::uint32_t number = 0; number < parts.blocks(); ++number) add_block(parts, number, graph);
  const NetworkVertices first = add_switches(parts.network, graph);
  for (std::uint32_t number = 0; number < parts.blocks(); ++number) {
    const auto first_vertex = number * static_cast<std::uint32_t>(parts.block.vertices.size());
    add_cables(parts, number, first_vertex, first.leaves, graph);
  }
  add_bundles(parts, first, graph);
  return graph;
}

}  // namespace isthmus
