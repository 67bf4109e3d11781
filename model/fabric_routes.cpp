// Routes, found once per block type and pair of pods. The weights state the preference: NVLink before
// everything else, so that no detour over PCIe is ever shorter than a chain of NVLinks.

#include <numeric>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_parts.hpp"
#include "model/fabric_paths.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t nvlink_weight = 1, host_weight = 100;

bool is_nvlink(const PartBlock& block, const FabricEdge& edge) {
  return block.vertices[edge.from].kind == VertexKind::nvswitch ||
         block.vertices[edge.to].kind == VertexKind::nvswitch;
}

std::vector<Arc> arcs_of(const PartBlock& block) {
  std::vector<Arc> arcs;
  for (const FabricEdge& edge : block.edges) {
    arcs.push_back({edge.from, edge.to, is_nvlink(block, edge) ? nvlink_weight : host_weight});
  }
  return arcs;
}

/// Edges in series may belong to one link, which the route names once.
BlockRoutes::Links links_along(const PartBlock& block, std::span<const Arc> arcs, const PathTree& tree,
                               std::uint32_t target) {
  BlockRoutes::Links links;
  for (const std::uint32_t arc : tree.arcs_to(target, arcs)) {
    const std::optional<LinkId> link = block.edges[arc].link;
    ISTHMUS_ASSERT(link, "edge {} of a route belongs to no link", arc);
    if (links.empty() || links.back() != link->value) links.push_back(link->value);
  }
  return links;
}

/// The nearest NIC; among equally near ones the GPU's own rail, then the lower number.
std::uint32_t nearest_nic(const PartBlock& block, const PathTree& from_gpu, std::uint32_t gpu) {
  std::uint32_t best = gpu;
  for (std::uint32_t nic = 0; nic < block.nic_vertices.size(); ++nic) {
    const auto distance = [&](std::uint32_t number) { return from_gpu.distance[block.nic_vertices[number]]; };
    if (distance(nic) < distance(best)) best = nic;
  }
  return best;
}

void find_domains(const PartBlock& block, BlockRoutes& routes) {
  std::vector<Arc> nvlinks;
  for (const FabricEdge& edge : block.edges) {
    if (is_nvlink(block, edge)) nvlinks.push_back({edge.from, edge.to});
  }
  // GPUs are the first vertices, so their components are numbered 0, 1, ... without gaps.
  const auto component = components(static_cast<std::uint32_t>(block.vertices.size()), nvlinks);
  routes.domain.assign(component.begin(), component.begin() + block.gpus());
  for (const std::uint32_t domain : routes.domain) routes.domains = std::max(routes.domains, domain + 1);
}

}  // namespace

BlockRoutes find_routes(const PartBlock& block) {
  const std::uint32_t gpus = block.gpus();
  const auto vertex_count = static_cast<std::uint32_t>(block.vertices.size());
  const std::vector<Arc> arcs = arcs_of(block);
  std::vector<std::uint32_t> gpu_vertices(gpus);
  std::iota(gpu_vertices.begin(), gpu_vertices.end(), 0u);
  const auto from_gpu = shortest_paths(vertex_count, arcs, gpu_vertices);
  const auto from_nic = shortest_paths(vertex_count, arcs, block.nic_vertices);

  BlockRoutes routes;
  find_domains(block, routes);
  routes.inside.resize(std::size_t{gpus} * gpus);
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    const std::uint32_t nic = nearest_nic(block, from_gpu[gpu], gpu);
    routes.nic.push_back(nic);
    routes.leave.push_back(links_along(block, arcs, from_gpu[gpu], block.nic_vertices[nic]));
    routes.enter.push_back(links_along(block, arcs, from_nic[nic], gpu));
    for (std::uint32_t to = 0; to < gpus; ++to) {
      if (to == gpu || routes.domain[to] != routes.domain[gpu]) continue;
      routes.inside[std::size_t{gpu} * gpus + to] = links_along(block, arcs, from_gpu[gpu], to);
    }
  }
  return routes;
}

/// The spines of a pod are one vertex here, and so are all cores: the links pool the wires between them.
std::vector<std::vector<LinkId>> find_pod_routes(const FabricParts& parts) {
  const std::uint32_t pods = parts.network.pods, cores = pods;
  std::vector<std::vector<LinkId>> routes(std::size_t{pods} * pods);
  if (parts.network.cores() == 0) return routes;
  std::vector<Arc> arcs;  // arc 2 p goes up from pod p, arc 2 p + 1 down to it: the order of the links
  for (std::uint32_t pod = 0; pod < pods; ++pod) {
    arcs.push_back({pod, cores});
    arcs.push_back({cores, pod});
  }
  std::vector<std::uint32_t> sources(pods);
  std::iota(sources.begin(), sources.end(), 0u);
  const auto trees = shortest_paths(pods + 1, arcs, sources);
  for (std::uint32_t from = 0; from < pods; ++from) {
    for (std::uint32_t to = 0; to < pods; ++to) {
      for (const std::uint32_t arc : trees[from].arcs_to(to, arcs)) {
        routes[std::size_t{from} * pods + to].push_back({parts.pod_link(0) + arc});
      }
    }
  }
  return routes;
}

}  // namespace isthmus
