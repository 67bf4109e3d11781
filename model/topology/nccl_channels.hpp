#pragma once
// How many channels NCCL opens. Collective channels come from rings: with speed s, of a list of speeds,
//   one domain       floor(nvlink / s) rings
//   several domains  the least of nets x floor(net / s) and floor(nvlink x ranks / ((ranks - 1) s)), for the
//                    ring does not cross NVLink where it crosses the network
// and the speed that gives most rings x s is taken, the higher one where two give the same. NCCL searches the
// graph for such rings; the counts above are what it finds on machines that are alike in all their GPUs.
// Send and receive use T channels in total, and pp of them for each peer:
//   pp = power of two >= the least start over all peers, halved while pp x ceil(peers / 8) > T
// Invariant: T and pp are powers of two, pp <= T <= 64; pp never grows with the ranks of several domains.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md; the rule for rings is ours.

#include <cstdint>
#include <span>
#include <vector>

#include "model/topology/nccl_nics.hpp"

namespace isthmus {

/// What decides about rings, of the least equipped GPU.
struct NcclRingShape {
  std::uint32_t sm = 90;
  std::uint32_t domains = 1;
  std::uint32_t ranks_per_domain = 8;
  Bandwidth gpu_to_gpu;    // the best path between two GPUs
  Bandwidth gpu_capacity;  // all NVLinks out of a GPU together; without NVLink the same as gpu_to_gpu
  Bandwidth gpu_to_net;    // the best path to a network device
  std::uint32_t nets = 0;  // network devices of a domain
};

/// The shape of `domains` blocks that are alike.
NcclRingShape ring_shape(const NcclPaths& paths, std::uint32_t domains);

struct NcclRings {
  std::uint32_t rings = 0;
  Bandwidth speed;  // of each
  friend bool operator==(const NcclRings&, const NcclRings&) = default;
};

/// The rings as the log of the search shows them, doubled where NCCL doubles them.
NcclRings collective_rings(const NcclRingShape& shape);
std::uint32_t collective_channels(const NcclRingShape& shape, const NcclSettings& settings = {});

/// T.
std::uint32_t p2p_channels(std::uint32_t collective, const NcclSettings& settings = {});

/// Channels that a GPU would like towards a GPU of its own domain, and towards any other.
std::uint32_t local_peer_start(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t peer);
std::uint32_t remote_peer_start(const NcclPaths& paths, std::uint32_t gpu, const NcclSettings& settings = {});
/// The least over all GPUs of a block and all their peers, in a communicator of `domains` such blocks.
std::uint32_t least_peer_start(const NcclPaths& paths, std::uint32_t domains,
                               const NcclSettings& settings = {});

struct NcclCommunicatorSize {
  std::uint32_t ranks = 1, domains = 1;
};

/// pp, from the least start.
std::uint32_t channels_per_peer(std::uint32_t least_start, std::uint32_t total_channels,
                                const NcclCommunicatorSize& size, const NcclSettings& settings = {});

}  // namespace isthmus
