#pragma once
// Paths inside a block, past NVLink: over PCIe, C2C and sockets, and over NVLink between GPUs of one
// partition. Shortest paths (Boost.Graph behind model/fabric_paths.hpp) whose weights state NCCL's order of
// preference: below one PCIe switch (PIX) before several (PXB), before GPU - Grace - NIC (P2C), before
// through a CPU (PHB), before between sockets (SYS). Ties go to the lower vertex number.
// Invariants: a path passes through no other GPU and no NIC; an NVLink path through one GPU at most (NCCL's
// NVB), and never leaves the partition.
// Source of the order: NCCL 2.30.7's path kinds, restated in docs/nccl-rules.md.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

/// Wires of a block, in order; and what the path costs: comparable between paths of one block.
struct BlockPath {
  std::vector<std::uint32_t> wires;
  std::uint32_t cost = 0;
};

class HostPaths {
 public:
  explicit HostPaths(const Block& block) : block_(block) {}

  /// Over PCIe, C2C and sockets from a vertex to all others; empty where there is no way, and to itself.
  std::vector<std::optional<BlockPath>> from(std::uint32_t vertex) const;
  /// Over NVLink from a GPU (its number) to every GPU of its partition, by GPU number.
  std::vector<std::optional<BlockPath>> nvlink_from(std::uint32_t gpu) const;

 private:
  const Block& block_;
};

/// Paths that cost less reach their NIC without crossing a CPU, but for GPU - Grace - NIC.
inline constexpr std::uint32_t through_cpu = 2'000;

/// NVLink domain of each GPU: what NVLink joins within a partition. Numbered in the order of the first GPU.
std::vector<std::uint32_t> nvlink_domains(const Block& block);

}  // namespace isthmus
