#include "model/topology/host_paths.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "model/fabric_paths.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t switch_weight = 10, c2c_weight = 100, cpu_weight = 1'000, socket_weight = 100'000;

bool is(const Block& block, std::uint32_t vertex, VertexKind kind) {
  return block.vertices[vertex].kind == kind;
}

std::uint32_t host_weight(const Block& block, const BlockWire& wire) {
  if (wire.kind == WireKind::c2c) return c2c_weight;
  if (wire.kind == WireKind::socket) return socket_weight;
  const bool at_cpu = is(block, wire.from, VertexKind::cpu) || is(block, wire.to, VertexKind::cpu);
  return at_cpu ? cpu_weight : switch_weight;
}

/// The arcs of a search with the wire of each.
struct Search {
  std::vector<Arc> arcs;
  std::vector<std::uint32_t> wires;

  std::vector<std::optional<BlockPath>> run(std::uint32_t vertex_count, std::uint32_t source) const {
    const PathTree tree = shortest_paths(vertex_count, arcs, std::array{source}).front();
    std::vector<std::optional<BlockPath>> paths(vertex_count);
    for (std::uint32_t vertex = 0; vertex < vertex_count; ++vertex) {
      if (vertex == source || tree.distance[vertex] == unreached) continue;
      BlockPath path{{}, tree.distance[vertex]};
      for (const std::uint32_t arc : tree.arcs_to(vertex, arcs)) path.wires.push_back(wires[arc]);
      paths[vertex] = std::move(path);
    }
    return paths;
  }
};

std::uint32_t size_of(const Block& block) { return static_cast<std::uint32_t>(block.vertices.size()); }

}  // namespace

std::vector<std::optional<BlockPath>> HostPaths::from(std::uint32_t vertex) const {
  Search search;
  for (std::uint32_t w = 0; w < block_.wires.size(); ++w) {
    const BlockWire& wire = block_.wires[w];
    const bool ends = is(block_, wire.from, VertexKind::gpu) || is(block_, wire.from, VertexKind::nic);
    if (wire.kind == WireKind::nvlink || (ends && wire.from != vertex)) continue;
    search.arcs.push_back({wire.from, wire.to, host_weight(block_, wire)});
    search.wires.push_back(w);
  }
  return search.run(size_of(block_), vertex);
}

std::vector<std::optional<BlockPath>> HostPaths::nvlink_from(std::uint32_t gpu) const {
  constexpr std::uint32_t to_chip = 1, to_gpu = 2, from_chip = 1;
  std::vector<char> closed(block_.vertices.size(), 0);
  for (const BlockGpu& other : block_.gpus) {
    closed[other.vertex] = other.partition != block_.gpus[gpu].partition;
  }
  Search search;
  for (std::uint32_t w = 0; w < block_.wires.size(); ++w) {
    const BlockWire& wire = block_.wires[w];
    if (wire.kind != WireKind::nvlink || closed[wire.from] || closed[wire.to]) continue;
    const std::uint32_t weight = is(block_, wire.to, VertexKind::nvswitch)     ? to_chip
                                 : is(block_, wire.from, VertexKind::nvswitch) ? from_chip
                                                                               : to_gpu;
    search.arcs.push_back({wire.from, wire.to, weight});
    search.wires.push_back(w);
  }
  const auto to_vertex = search.run(size_of(block_), block_.gpus[gpu].vertex);
  std::vector<std::optional<BlockPath>> paths;
  for (const BlockGpu& other : block_.gpus) {
    const std::optional<BlockPath>& path = to_vertex[other.vertex];
    const auto arrives_at_gpu = [&](std::uint32_t w) {
      return is(block_, block_.wires[w].to, VertexKind::gpu);
    };
    const bool direct = path && std::count_if(path->wires.begin(), path->wires.end(), arrives_at_gpu) <= 2;
    paths.push_back(direct ? path : std::nullopt);
  }
  return paths;
}

std::vector<std::uint32_t> nvlink_domains(const Block& block) {
  // A chip joins the GPUs of one partition only, so it stands for each of them as a vertex of its own.
  std::map<std::uint32_t, std::uint32_t> partitions;  // -> position
  std::map<std::uint32_t, std::uint32_t> gpu_of_vertex;
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    partitions.try_emplace(block.gpus[gpu].partition, static_cast<std::uint32_t>(partitions.size()));
    gpu_of_vertex[block.gpus[gpu].vertex] = gpu;
  }
  const auto gpus = static_cast<std::uint32_t>(block.gpus.size());
  const auto partition_of = [&](std::uint32_t vertex) {
    return partitions.at(block.gpus[gpu_of_vertex.at(vertex)].partition);
  };
  std::vector<Arc> arcs;
  for (const BlockWire& wire : block.wires) {
    if (wire.kind != WireKind::nvlink || !gpu_of_vertex.contains(wire.from)) continue;
    const std::uint32_t from = gpu_of_vertex.at(wire.from), own = partition_of(wire.from);
    if (!gpu_of_vertex.contains(wire.to)) {
      arcs.push_back({from, gpus + own * size_of(block) + wire.to, 1});
    } else if (partition_of(wire.to) == own) {
      arcs.push_back({from, gpu_of_vertex.at(wire.to), 1});
    }
  }
  const auto all = components(gpus + static_cast<std::uint32_t>(partitions.size()) * size_of(block), arcs);
  return {all.begin(), all.begin() + gpus};
}

}  // namespace isthmus
