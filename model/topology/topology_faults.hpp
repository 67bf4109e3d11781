#pragma once
// Every invariant of model/topology/topology.hpp, judged on a value that may hold anything: what builds,
// reads or edits topologies ends with this list empty, and everything behind it relies on that.
// Invariant: terminates without reading out of range whatever the value is, in time proportional to it (but
// for sorting), and lists every violation up to max_topology_faults. Keys are places in the value:
// "types.0.wires.3.to" is the end of the fourth record of Block::wires of the first type.
// Limits: room for 65,536 hosts of 16 GPUs; rates up to 10 TB/s of one record, so that sums over a block
// fit.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/input_fault.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

struct TopologyLimits {
  static constexpr std::size_t gpus = std::size_t{1} << 20, nics = std::size_t{1} << 21;
  static constexpr std::size_t hosts = std::size_t{1} << 20, blocks = std::size_t{1} << 20;
  static constexpr std::size_t types = std::size_t{1} << 16;
  static constexpr std::size_t vertices_per_block = std::size_t{1} << 14;
  static constexpr std::size_t wires_per_block = std::size_t{1} << 18;  // records, both ways
  static constexpr std::size_t attributes_per_vertex = 256;
  static constexpr std::size_t switches = std::size_t{1} << 19, cables = std::size_t{1} << 22;
  static constexpr std::size_t text_bytes = 4096;
  static constexpr std::uint32_t wires = 1 << 16;  // of one record
  static constexpr std::uint32_t rails = 1 << 16, partitions = 1 << 16;
  static constexpr Bandwidth rate{10'000'000'000'000};
  static constexpr std::uint64_t seed = 0x7FFF'FFFF'FFFF'FFFF;
};

inline constexpr std::size_t max_topology_faults = 1000;

std::vector<InputFault> topology_faults(const Topology& topology);

/// NICs and GPUs of a block are vertices of these kinds; the same for every table of it.
std::size_t count_vertices(const Block& block, VertexKind kind);

}  // namespace isthmus
