#pragma once
// Names of the parts of a topology in texts for people: "GPU 3 on host 12", "NIC 2 (mlx5_4) on host 0",
// "NVSwitch chip 7 of block 1". Hosts are numbered through the fabric, block after block; what stands on a
// host by its own number there.
// Invariant: for block types that stand more than once the names are those in the first such block.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

/// "GPU", "NVSwitch chip", "PCIe switch", ...
std::string_view display_name(VertexKind kind);
/// "NVLink", "C2C", "PCIe", "socket link".
std::string_view display_name(WireKind kind);

/// Where a block begins.
struct BlockPlace {
  std::uint32_t block = 0;
  std::uint64_t host = 0, gpu = 0, nic = 0;
};
/// Of every block, and one past the last.
std::vector<BlockPlace> block_places(const Topology& topology);

std::string vertex_name(const BlockVertex& vertex, const BlockPlace& place);
/// Its name, or its tier and number where it has none.
std::string switch_name(const Network& network, std::uint32_t number);

/// "450 GB/s"; "unknown" for 0.
std::string rate_text(Bandwidth rate);

}  // namespace isthmus
