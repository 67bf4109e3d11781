#pragma once
// Counts that tests of topology readers compare with published ones, made from the value alone.
// Invariant: nothing here knows any file format.
// NVLink ends are counted on the GPUs' side, as the published tables do.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/importers.hpp"

namespace isthmus {

inline std::size_t vertices_of(const Topology& topology, VertexKind kind) {
  std::size_t count = 0;
  for (const std::uint32_t type : topology.blocks) {
    for (const BlockVertex& vertex : topology.types.at(type).vertices) count += vertex.kind == kind ? 1U : 0U;
  }
  return count;
}

inline std::size_t nvlink_ends(const Topology& topology) {
  std::size_t count = 0;
  for (const std::uint32_t type : topology.blocks) {
    const Block& block = topology.types.at(type);
    for (const BlockWire& wire : block.wires) {
      if (wire.kind == WireKind::nvlink && block.vertices.at(wire.from).kind == VertexKind::gpu)
        count += wire.wires;
    }
  }
  return count;
}

inline std::size_t switches_of(const Topology& topology, VertexKind tier) {
  return static_cast<std::size_t>(
      std::count_if(topology.network.switches.begin(), topology.network.switches.end(),
                    [&](const NetworkSwitch& each) { return each.tier == tier; }));
}

inline std::vector<std::string> texts_of(const ImportedTopology& imported, std::string_view code) {
  std::vector<std::string> texts;
  for (const Finding& finding : imported.findings)
    if (finding.code == code) texts.push_back(finding.text);
  return texts;
}

/// The vertex with that label in a block; the number of vertices without one.
inline std::uint32_t labelled(const Block& block, std::string_view label) {
  const auto found = std::find_if(block.vertices.begin(), block.vertices.end(),
                                  [&](const BlockVertex& vertex) { return vertex.label == label; });
  return static_cast<std::uint32_t>(found - block.vertices.begin());
}

inline const BlockWire* wire_between(const Block& block, std::uint32_t from, std::uint32_t to) {
  const auto found = std::find_if(block.wires.begin(), block.wires.end(),
                                  [&](const BlockWire& wire) { return wire.from == from && wire.to == to; });
  return found == block.wires.end() ? nullptr : &*found;
}

}  // namespace isthmus
