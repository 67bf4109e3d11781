#pragma once
// The whole fabric, vertex by vertex and edge by edge, for exporters, findings and tests: plain values, no
// graph library. Routing never needs it (model/fabric.hpp); it is expanded on demand.
// Order: block after block (an HGX host, an NVL72 rack), inside a block GPUs, NVSwitch chips, PCIe switches,
// CPU sockets, NICs; then leaves, spines, cores. The n-th GPU vertex is GPU n, the n-th NIC vertex the NIC of
// GPU n. Equal specifications give equal graphs.
// Invariants: edges are directed; `rate` is that of all `wires` together; an edge with a link is one of that
// link's parallel wires or one of its stages in series; an edge without one is crossed by no route.

#include <optional>
#include <string>
#include <vector>

#include "model/topology/topology.hpp"
#include "model/units.hpp"

namespace isthmus {

struct FabricVertex {
  VertexKind kind = VertexKind::gpu;
  std::string name;  // "PCIe switch 3 on host 12", "leaf 3 of unit 1"
};

struct FabricEdge {
  std::uint32_t from = 0, to = 0;  // index into FabricGraph::vertices
  std::uint32_t wires = 1;
  Bandwidth rate;
  std::optional<LinkId> link;
};

struct FabricGraph {
  std::vector<FabricVertex> vertices;
  std::vector<FabricEdge> edges;
};

}  // namespace isthmus
