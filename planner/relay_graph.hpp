#pragma once
// The fabric as a plain directed graph, read off the routes between the GPUs that take part: a vertex per
// GPU and per place where links of a route meet, an edge per link. Invariant: every route is a path of it,
// so what no path can do, no plan can.

#include <cstdint>
#include <map>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

struct RelayGraph {
  struct Edge {
    std::uint32_t from = 0, to = 0;
    LinkId link;
  };
  std::uint32_t vertices = 0;
  std::vector<Edge> edges;                              // by link
  std::vector<std::uint32_t> vertex_of_gpu;             // per GPU of the fabric
  std::map<DomainId, std::vector<char>> inside_domain;  // per edge: used between GPUs of that domain
};

/// Of routes between GPUs that are marked.
RelayGraph relay_graph(const Fabric& fabric, const std::vector<char>& part);

/// Vertices that can be reached from `sources` when each edge carries at most its capacity and as much as
/// possible has been sent to `target`; and how much that is, counted up to `enough`.
struct Separation {
  double flow = 0;
  std::vector<char> reached;
};
Separation separate(const RelayGraph& graph, const std::vector<double>& capacities,
                    const std::vector<std::uint32_t>& sources, std::uint32_t target, double enough);

}  // namespace isthmus
