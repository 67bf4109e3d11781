#pragma once
// Routes inside one kind of block, with some of its NICs plugged in: between GPUs of an NVLink domain,
// between other GPUs of one host, and between a GPU and the cable of its NIC. Found once per kind; Fabric
// joins them.
// Rules: inside a domain NVLink only; GPUs of one host without NVLink between them use PCIe, C2C and sockets;
// everything else leaves through the GPU's own NIC (own_nics.hpp). Without GPUDirect - switched off, or the
// NIC is on the far side of a CPU anyway - traffic passes the memory of the GPU's CPU.
// Invariant: links count from the block's first (BlockLinks).

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/block_links.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

struct BlockRoutes {
  using Links = std::vector<std::uint32_t>;
  std::vector<std::uint32_t> domain;  // per GPU
  std::uint32_t domains = 0;
  std::vector<std::optional<std::uint32_t>> nic;  // per GPU: its own
  std::vector<char> relays;                       // per GPU: its NIC is near and takes others' traffic (PXN)
  std::vector<Links> leave, enter;                // per GPU: through its NIC, and from there
  std::vector<std::optional<Links>> inside;       // [from * GPUs + to]; empty where the network is the way
  std::vector<char> over_nvlink;                  // the same pairs: whether that is NVLink
};

BlockRoutes find_routes(const Block& block, const BlockLinks& links, const std::vector<char>& plugged);

}  // namespace isthmus
