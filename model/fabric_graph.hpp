#pragma once
// The whole fabric, vertex by vertex and edge by edge, for exporters, findings and tests: plain values, no
// graph library. Routing never needs it (model/fabric.hpp); it is expanded on demand.
// Order: the vertices of block after block (an HGX host, an NVL72 rack), then the switches. The n-th GPU
// vertex is GPU n, the n-th NIC vertex NIC n. Equal topologies give equal graphs.
// Invariants: edges are directed; `rate` is that of all `wires` together; an edge is one of its link's
// parallel wires or one of its stages in series.

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
  LinkId link;
};

struct FabricGraph {
  std::vector<FabricVertex> vertices;
  std::vector<FabricEdge> edges;
};

}  // namespace isthmus
