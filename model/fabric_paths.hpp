#pragma once
// Internal to model/fabric*.cpp: graph algorithms of Boost.Graph behind plain functions, so that its
// templates are compiled once. Vertices are 0 ... vertex_count - 1; arcs are directed. Invariant: results
// depend on the arcs alone. Among equally short paths the one that arrives from the lower vertex number is
// taken, at every vertex; parallel arcs tie to the lower arc number.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace isthmus {

struct Arc {
  std::uint32_t from = 0, to = 0;
  std::uint32_t weight = 1;  // > 0
};

inline constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();

struct PathTree {
  std::vector<std::uint32_t> distance;  // per vertex; `unreached` where there is no path
  std::vector<std::uint32_t> arriving;  // arc by which the path arrives; `unreached` at the source as well

  /// Arc numbers from the source to `target`, in order.
  std::vector<std::uint32_t> arcs_to(std::uint32_t target, std::span<const Arc> arcs) const;
};

/// One tree of shortest paths (Dijkstra) per source, in the order of `sources`.
std::vector<PathTree> shortest_paths(std::uint32_t vertex_count, std::span<const Arc> arcs,
                                     std::span<const std::uint32_t> sources);

/// Component number of each vertex, the arcs taken without direction. Numbered in the order of their lowest
/// vertex.
std::vector<std::uint32_t> components(std::uint32_t vertex_count, std::span<const Arc> arcs);

struct FlowArc {
  std::uint32_t from = 0, to = 0;
  std::int64_t capacity = 0;  // >= 0
};

/// The value of a maximum flow (push-relabel). Requires source != target and capacities whose sum fits.
std::int64_t maximum_flow(std::uint32_t vertex_count, std::span<const FlowArc> arcs, std::uint32_t source,
                          std::uint32_t target);

}  // namespace isthmus
