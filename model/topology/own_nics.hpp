#pragma once
// Which NIC a GPU uses, as NCCL chooses without PXN (nccl_nics.hpp has the rule): the NIC with the highest
// path bandwidth, then the best kind of path; equally near ones are dealt out. One NIC beside each GPU: its
// own. Two GPUs and two NICs below one switch: one each. A virtual machine that shows all eight equally near:
// 0, 4, 2, 6, 1, 5, 3, 7.
// Invariant: the NIC is on the GPU's own host and plugged in; BlockGpu::nic overrules the choice where that
// NIC is plugged in; GPUDirect does not matter for it.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

/// NIC numbers per GPU; empty where its host has none it could use. `plugged`: per NIC of the block; all when
/// empty. Of a card with several ports the first plugged one stands for the card.
std::vector<std::optional<std::uint32_t>> own_nics(const Block& block, const std::vector<char>& plugged = {});

}  // namespace isthmus
