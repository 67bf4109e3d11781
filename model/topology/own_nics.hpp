#pragma once
// Which NIC a GPU uses, as NCCL chooses: the nearest by the kind of path; among equally near ones those of the
// list L (in NIC order), the GPU takes number i = dev mod (GPUs that share L[0]), with i bit-reversed where
// |L| is a power of two. One NIC beside each GPU: its own. Two GPUs and two NICs below one switch: one each.
// A virtual machine that shows all NICs equally near: 0, 4, 2, 6, 1, 5, 3, 7.
// Invariant: the NIC is on the GPU's own host and plugged in; BlockGpu::nic overrules the choice where that
// NIC is plugged in. Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

/// NIC numbers per GPU; empty where its host has none it could use. `plugged`: per NIC of the block; all when
/// empty. Of a card with several ports the first plugged one stands for the card.
std::vector<std::optional<std::uint32_t>> own_nics(const Block& block, const std::vector<char>& plugged = {});

}  // namespace isthmus
