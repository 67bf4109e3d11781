#pragma once
// How the ops of one group share channels and kernels. Ops are queued epoch by epoch - epoch e holds the e-th
// op with every peer - and in an epoch round by round. On each of its channels an op joins the current batch
// unless that is full (eight ops), has an op of the same round, is of another epoch or of another r div 8;
// then it opens the next. Batches of one channel run one after another, channels do not wait for each other.
// A kernel takes ops while, with b batches and i ops in it,
//   (b + pp) x 16 + i x 48 <= 4064,  or  (b + pp) x 16 <= 4064 and i x 48 <= half of the work FIFO;
// kernels of a communicator run in order.
// Invariant: batch numbers of a channel, and kernel numbers, never fall in the order of the queue.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <span>
#include <vector>

#include "model/topology/nccl_schedule.hpp"

namespace isthmus {

inline constexpr std::uint32_t nccl_batch_ops = 8;

/// The send and the receive of one round.
struct NcclQueuedOp {
  std::uint32_t round = 0, epoch = 0;
  friend bool operator==(const NcclQueuedOp&, const NcclQueuedOp&) = default;
};

/// The queue, from the number of ops in each round: the larger of its sends and its receives.
std::vector<NcclQueuedOp> queue_of(std::span<const std::uint32_t> ops_per_round);

struct NcclPlacedOp {
  std::uint32_t kernel = 0;
  std::vector<std::uint32_t> channels{};  // of its parts
  std::vector<std::uint32_t> batches{};   // of its parts, counted per channel over the whole group
};

/// `parts`: of each op of the queue.
std::vector<NcclPlacedOp> place_group(std::span<const NcclQueuedOp> queue,
                                      std::span<const std::uint32_t> parts, std::uint32_t channels_per_peer,
                                      const NcclChannelRule& rule, const NcclSettings& settings = {});

/// Warps of a channel's 20 that an op of a batch of `ops` uses: those of a send with its receive.
struct NcclWarps {
  std::uint32_t send = 0, receive = 0;
  friend bool operator==(const NcclWarps&, const NcclWarps&) = default;
};
NcclWarps warps_of_pair(std::uint32_t ops);
/// The same for an op of one direction only.
std::uint32_t warps_of_one(std::uint32_t ops);

}  // namespace isthmus
