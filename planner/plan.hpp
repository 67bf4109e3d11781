#pragma once
// A plan is a plain value: what moves, from where to where, in which order.
// Pattern and instance. A Pattern holds the steps of one tensor geometry over *local* ranks; an Instance
// binds it to one tensor and to global ranks. So half a million transfers are a few thousand steps.
// Order. Every step of an instance belongs to a lane (communicator x stream) and to a numbered group. On
// each lane by itself, a rank takes the groups it is part of in ascending order, at most `window` of them
// at a time, and starts all its operations of a group together. An operation runs once all its ranks have
// started its group and the steps named in `after` are complete. Where a lane coalesces, operations of one
// group with equal kind, buffers and ranks are one operation. Simulator and executors obey this rule.
// Buffers. Per tensor, each rank has its source shard (read only), its target shard, and staging addressed
// by global element indices: the smallest box around what the instance's steps stage there, row-major, at
// `offset` of a staging buffer that instances reuse, or in memory of its own. Invariant of a correct plan:
// each target element is written exactly once, from a buffer that holds the right element at that moment.
// planner/check.hpp proves it.

#include <cstdint>
#include <string>
#include <vector>

#include "model/layout.hpp"
#include "model/units.hpp"
#include "planner/split.hpp"

namespace isthmus {

/// A rank within an instance: offset from the instance's source_base or target_base.
struct LocalRank {
  static constexpr std::uint32_t target_side = 1U << 31U;
  std::uint32_t value = 0;

  static constexpr LocalRank source(std::size_t offset) { return {static_cast<std::uint32_t>(offset)}; }
  static constexpr LocalRank target(std::size_t offset) {
    return {static_cast<std::uint32_t>(offset) | target_side};
  }
  friend constexpr auto operator<=>(LocalRank, LocalRank) = default;
};

/// Operations of one rank in one group that are known to be safe: NCCL hangs at 15,000, not at 8,000.
inline constexpr std::uint32_t safe_group_size = 8192;

enum class StepKind : std::uint8_t {
  send,        // region from rank `source` to rank `target`, as a message
  put,         // the same, written straight into the target's memory; one NVLink domain, any strides
  copy,        // region within one rank (source and target are equal)
  pack,        // a copy into staging, so that the region lies in one piece
  unpack,      // a copy out of staging into the target shard
  broadcast,   // region from `source` to every member of `members` (the root included)
  all_gather,  // members hold parts of the region; afterwards each member holds all of it. Between target
               // buffers it is in place: a part that `after` brought to a member is not written there again
  load,        // an engine's weight loader takes the region out of staging into the target shard of one rank;
               // or, from target to target, processes what has arrived: nothing is written anew
  quantize,    // a source makes MXFP8 of the BF16 that it holds, into staging; tensors with a QuantisedPart
};
std::string_view to_string(StepKind kind);

constexpr bool is_collective(StepKind kind) {
  return kind == StepKind::broadcast || kind == StepKind::all_gather;
}
/// Whether the step stays on one rank.
constexpr bool is_local(StepKind kind) {
  return kind == StepKind::copy || kind == StepKind::pack || kind == StepKind::unpack ||
         kind == StepKind::load || kind == StepKind::quantize;
}

inline constexpr StepKind last_step_kind = StepKind::quantize;

enum class Buffer : std::uint8_t { source, staging, target };
std::string_view to_string(Buffer buffer);

struct Step {
  StepKind kind = StepKind::send;
  Buffer from = Buffer::source;
  Buffer to = Buffer::target;
  std::uint16_t lane = 0;     // added to the instance's lane
  std::uint32_t group = 0;    // added to the instance's group
  LocalRank source, target;   // collectives: source is the root (broadcast); target is unused
  std::uint32_t members = 0;  // collectives: index into Pattern::members
  std::uint32_t parts = 1;    // HuggingFace tensors handled one by one (what exporters and loaders pay for)
  std::uint32_t after_begin = 0, after_end = 0;  // range in Pattern::after: steps that must be complete
  Region region;                                 // global element indices of the tensor
};

struct Pattern {
  std::vector<Step> steps;
  std::vector<std::uint32_t> after;             // step indices, each below the step that names it
  std::vector<std::vector<LocalRank>> members;  // rank lists of collectives
};

struct Instance {
  static constexpr std::uint32_t no_schedule = 0xFFFFFFFF, own_memory = 0xFFFFFFFF;
  PatternId pattern;
  TensorId tensor;
  Rank source_base, target_base;
  LaneId lane;
  std::uint32_t group = 0;
  // Start of a range in Plan::schedule, one absolute group per step; instances of one pattern may share it.
  std::uint32_t schedule = no_schedule;
  std::uint32_t buffer = own_memory;  // index of Plan::buffers: where its staging lies on every rank
  Bytes offset{};                     // in that buffer
  std::uint32_t version = 0;          // the refit whose weights it moves
};

struct Lane {
  std::string name;
  std::uint32_t window = 1;
  bool coalesce = false;
  std::uint32_t split = Split::none;  // whose communicators carry it; none: one of all ranks
};

/// Memory of this size on every rank that stages in it. Instances that use the same bytes of it follow each
/// other: on each rank the earlier one's last use is complete before the later one's first write, by the
/// order of the one lane that both stage on.
struct StagingBuffer {
  std::string name;
  Bytes size;
};

struct Plan {
  std::string policy;
  std::uint32_t version = 0;  // the refit that it belongs to; that of every instance
  std::vector<Lane> lanes{};
  std::vector<Pattern> patterns{};
  std::vector<Instance> instances{};
  std::vector<StagingBuffer> buffers{};
  std::vector<std::uint32_t> schedule{};  // absolute groups, for instances whose order is global
  std::vector<Split> splits{};

  const Pattern& pattern(const Instance& instance) const { return patterns[instance.pattern.index()]; }
  std::uint32_t group_of(const Instance& instance, std::size_t step) const;
  /// Steps of all instances together: what the plan expands to.
  std::size_t step_count() const;
  /// Bytes that the plan itself occupies in memory.
  Bytes memory() const;
};

/// The global rank that a local one stands for.
constexpr Rank global_rank(const Instance& instance, LocalRank rank) {
  const bool target = (rank.value & LocalRank::target_side) != 0;
  return {target ? instance.target_base.value + (rank.value & ~LocalRank::target_side)
                 : instance.source_base.value + rank.value};
}

}  // namespace isthmus
