#pragma once
// The links of one kind of block. A link is a directed capacity that transfers share; wires between which the
// hardware spreads packets by itself form one link: all NVLinks of a GPU (its port), a NIC with its slot and
// its cable (the lesser of the two; all ports of a card together). Every other wire is a link of its own, and
// so is a direct NVLink bundle between two GPUs, which a transfer crosses between the two ports.
// Order: per GPU NVLink out, into, then PCIe or C2C out, into; per NIC out, into; then all other wires in
// the order of the block.
// Invariant: every wire belongs to exactly one link.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/fabric.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

struct BlockLink {
  std::string name;                   // "NVLink out of GPU 3", to be followed by " on host 12"
  std::optional<std::uint32_t> host;  // within the block; empty for what its hosts share
  LinkClass link_class = LinkClass::nvlink;
  Bandwidth nominal;
};

struct BlockLinks {
  struct Port {
    std::optional<std::uint32_t> out, in;
  };
  std::vector<BlockLink> links;
  std::vector<std::uint32_t> of_wire;  // per wire of the block
  std::vector<Port> nvlink;            // per GPU
  std::vector<Port> nic;               // per NIC; ports of one card share theirs

  /// The links along wires, each once where wires in series share one, with the ports of both GPUs around a
  /// direct NVLink bundle.
  std::vector<std::uint32_t> along(const Block& block, const std::vector<std::uint32_t>& wires) const;
};

BlockLinks links_of(const Block& block);

/// "PCIe switch 3", "NVSwitch chip 0", "NIC mlx5_3": a vertex within its host or block.
std::string vertex_name(const BlockVertex& vertex);

}  // namespace isthmus
