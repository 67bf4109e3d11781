#pragma once
// Which paths NCCL sees between the GPUs of a block, and between GPUs and NICs. A path has the worst kind and
// the least planned bandwidth of its links. NCCL takes the best kind, then the highest bandwidth, then the
// fewest hops; no path leads through a GPU, except NVLink through exactly one (NVB). On top of that search:
//   P2C   C2C to the CPU and PCIe below it, for a GPU's own NICs only
//   PXN   a GPU sends through the GPU that owns the NIC, if that one is better placed; never receives so
//   host memory (PHB) where the kind is too bad for GPU to GPU, or for a NIC to reach GPU memory
// Invariant: tables are dense, by position in `system.gpus` and `system.nets`; equal inputs, equal tables.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/topology/nccl_path_kind.hpp"
#include "model/topology/nccl_settings.hpp"
#include "model/topology/nccl_system.hpp"

namespace isthmus {

struct NcclPath {
  PathKind kind = PathKind::dis;
  Bandwidth bandwidth;  // 0 where there is no path
  std::uint32_t hops = 0;
  friend bool operator==(const NcclPath&, const NcclPath&) = default;
};

struct NcclNetPath {
  NcclPath send, receive;
  std::optional<std::uint32_t> relay;  // GPU that a PXN path goes through
  bool gpudirect_send = false, gpudirect_receive = false;
  friend bool operator==(const NcclNetPath&, const NcclNetPath&) = default;
};

struct NcclPaths {
  NcclSystem system;
  std::vector<NcclPath> gpu_to_gpu;     // source GPU by target GPU
  std::vector<bool> gpu_to_gpu_direct;  // the same; not through host memory or the network
  std::vector<NcclPath> gpu_to_cpu;     // per GPU, to the CPU with the fewest hops
  std::vector<NcclNetPath> gpu_to_net;  // GPU by network device

  const NcclPath& between(std::uint32_t source, std::uint32_t target) const {
    return gpu_to_gpu[source * system.gpus.size() + target];
  }
  bool direct(std::uint32_t source, std::uint32_t target) const {
    return gpu_to_gpu_direct[source * system.gpus.size() + target];
  }
  const NcclNetPath& to_net(std::uint32_t gpu, std::uint32_t net) const {
    return gpu_to_net[gpu * system.nets.size() + net];
  }
};

/// The best paths from one vertex to every other, before any of the rules above the search.
std::vector<NcclPath> search_paths(const NcclSystem& system, std::uint32_t base,
                                   const NcclSettings& settings);

NcclPaths nccl_paths(const Block& block, const NcclSettings& settings = {});
/// The same for a communicator that holds only these GPUs of the block.
NcclPaths nccl_paths(const Block& block, const NcclSettings& settings,
                     std::span<const std::uint32_t> members);

/// Whether two GPUs of a host exchange through NICs: both have one at PXB or better that beats their path.
bool network_beats_gpu_path(const NcclPaths& paths, std::uint32_t source, std::uint32_t target);

/// Whether every pair of GPUs is joined by NVLink or C2C.
bool all_joined_by_nvlink(const NcclPaths& paths);

}  // namespace isthmus
