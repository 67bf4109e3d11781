#pragma once
// A program, laid out for GPUs that one process drives: what is launched, on which stream, after what. The
// NCCL backend only carries it out, so all decisions are here, where a host can test them.
// A launch is either moves (a kernel per GPU that copies strided pieces, within the GPU or into a peer's
// memory) or an exchange (one NCCL group: messages between GPUs). Batches (hw/batches.hpp) follow each other
// lane by lane. What crosses between GPUs goes as a message straight from and to the arenas where it lies in
// one piece on both sides and is large (messages that continue each other become one); else it is packed,
// joined with all else between the same two GPUs, and unpacked. Puts are moves into the peer. Of copies that
// several ranks of one GPU get, one crosses.
// Slots. Packed bytes pass through `slots` areas per lane stream, so packing, sending and unpacking overlap.
// Invariants: `waits` name earlier launches; launches of one stream run in list order on each GPU; the list
// order is the same for all GPUs, so exchanges pair up; a group has at most `most_messages` messages, none
// larger than `largest_message`. A launch counts as complete when it is on every GPU.

#include <cstdint>
#include <span>
#include <vector>

#include "hw/fold.hpp"
#include "hw/program.hpp"

namespace isthmus::hw {

struct ScheduleOptions {
  std::uint32_t lane_streams = 2;          // lanes beyond share them; one communicator each
  std::uint32_t slots = 2;                 // per lane stream and GPU
  std::int64_t slot_bytes = 128 << 20;     // to send, and as much again to receive
  std::int64_t direct_bytes = 4 << 20;     // from this size on, contiguous messages are not packed
  std::int64_t largest_message = 1 << 30;  // NCCL counts and the kernels' indices stay below 2^31
  std::uint32_t most_messages = 1024;      // per group; NCCL hangs at about 15,000
  bool join = true;                        // false: what is packed goes as one message per operation
};

/// Offsets are those of GPU arenas. The source lies on the GPU whose list it is in.
struct GpuMove {
  Move move;
  std::uint32_t target_gpu = 0;
};

struct Message {
  std::uint32_t from = 0, to = 0;
  std::int64_t source = 0, target = 0, bytes = 0;
};

enum class LaunchKind : std::uint8_t { moves, exchange };

struct Launch {
  LaunchKind kind = LaunchKind::moves;
  std::uint32_t stream = 0;
  std::uint32_t waits_begin = 0, waits_end = 0;  // range in GpuSchedule::waits
  std::uint32_t messages_begin = 0, messages_end = 0;
};

struct GpuSchedule {
  /// Of each lane stream: packing, exchange, unpacking, and what needs no exchange.
  static constexpr std::uint32_t streams_per_lane = 4;
  static constexpr std::uint32_t exchange_stream = 1;

  Folding folding;
  std::uint32_t lane_streams = 1;
  std::vector<std::int64_t> arena_bytes;  // by GPU, with its slots
  std::vector<Launch> launches;
  std::vector<std::vector<GpuMove>> moves;              // by GPU
  std::vector<std::vector<std::uint32_t>> moves_begin;  // by GPU, by launch; one more
  std::vector<Message> messages;
  std::vector<std::uint32_t> waits;
  std::vector<std::uint32_t> launches_begin, launches_of;  // by operation: the launches that do its work
  std::vector<std::uint32_t> batch_of;                     // by operation
  std::vector<std::vector<std::uint32_t>> starts;          // by batch: the launches after which it may begin
  std::int64_t crossing_bytes = 0;                         // between GPUs, in one run

  std::span<const GpuMove> moves_of(std::uint32_t gpu, std::size_t launch) const;
  std::span<const Message> messages_of(const Launch& launch) const;
  std::span<const std::uint32_t> waits_of(const Launch& launch) const;
  std::span<const std::uint32_t> launches_of_operation(std::size_t operation) const;
  std::uint32_t streams() const { return lane_streams * streams_per_lane; }
};

/// Some operation that each launch works for.
std::vector<std::uint32_t> operations_of_launches(const GpuSchedule& schedule);

GpuSchedule make_schedule(const Program& program, std::uint32_t gpus, const ScheduleOptions& options = {});

}  // namespace isthmus::hw
