#pragma once
// What the wires of one type of block come to, GPU by GPU: NVLink domains, bandwidths, nearest NICs. Summary
// and findings stand on it; routes of the fabric are found elsewhere (model/fabric.hpp).
// Equations: a GPU's rates are sums over the wires that leave it; its NICs are those that the fewest PCIe and
// C2C stages lead to, a crossing of sockets counting as 16, or the card that it is told to use; their rate is
// divided by the GPUs with the same NICs. Domains: components of NVLink among GPUs of one partition.
// Invariant: takes a block without topology_faults; nullopt stands for a rate that the source does not say.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

struct GpuAnalysis {
  std::uint32_t domain = 0;  // numbered from 0 in the order of their first GPU
  std::uint64_t nvlink_wires = 0;
  std::optional<Bandwidth> nvlink{};  // per direction; 0 without NVLink
  std::optional<Bandwidth> host{};    // PCIe or C2C, whichever is wider; empty without either
  std::vector<std::uint32_t> nics{};  // numbers of the nearest, in order; empty when there are none
  bool crosses_socket = false;        // on the way to them
  std::optional<Bandwidth> nic{};     // its share of their rate
};

struct BlockAnalysis {
  std::vector<GpuAnalysis> gpus;
  std::uint32_t domains = 0;
  std::uint64_t nvlink_ends = 0;  // GPU-side
};

BlockAnalysis analyse(const Block& block);

}  // namespace isthmus
