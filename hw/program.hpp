#pragma once
// A proven plan lowered to bytes: the one thing that every backend executes.
// Memory. Each rank has one arena: its source shards, its target shards, its staging. A shard or a staged box
// lies row-major in one piece, at a multiple of `arena_alignment`; of a shared staging buffer only the bytes
// that are used are there. Shards that fused views place in one live buffer lie there, row-major in it: each
// as the pieces that are contiguous.
// Work. Operations are those of planner/operations.hpp, in that order, with their lanes, groups, windows and
// dependencies. Each stands for transfers: strided bytes from one rank's arena to one rank's arena. A message
// between two ranks holds the bytes of its transfers one after the other, each in row-major order of its
// region; where a transfer is in one piece on a side, that side needs no packing. Collectives are given as
// the transfers that they amount to: a broadcast from its root to each member, an all-gather from the holder
// of each part to each member that has to have it.
// Transfers are made when asked for, so a program is little larger than its plan.
// Elements are whole bytes (model/layout.hpp has no dtype below 8 bits; packed 4-bit weights travel as u8).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw/move.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/plan.hpp"

namespace isthmus::hw {

inline constexpr std::int64_t arena_alignment = 256;

/// A step of the plan, as messages name it.
struct ProgramStep {
  std::uint32_t instance = 0, step = 0;
  friend bool operator==(ProgramStep, ProgramStep) = default;
};

struct Transfer {
  Rank from, to;  // equal for what stays on a rank
  Move move;
  ProgramStep step;
};

/// What one rank holds of one tensor, or a contiguous piece of it. Empty shards are left out.
struct Shard {
  TensorId tensor;
  Region region;
  Bytes offset, bytes;  // in the rank's arena
};

struct Arena {
  Bytes size;     // all of it
  Bytes staging;  // where staging begins; source shards, then target shards lie before it
};

class Program {
 public:
  /// Both must outlive the program. Indices, ranks and regions must exist (check() finds nothing malformed).
  /// Raises InputError where staging leaves its buffer.
  Program(const Refit& refit, const Plan& plan);

  const Refit& refit() const { return refit_; }
  const Plan& plan() const { return plan_; }
  const Operations& operations() const { return operations_; }
  std::size_t ranks() const { return arenas_.size(); }
  const Arena& arena(Rank rank) const { return arenas_[rank.index()]; }
  Bytes memory() const;  // of all arenas
  const std::vector<Shard>& sources(Rank rank) const { return sources_[rank.index()]; }
  const std::vector<Shard>& targets(Rank rank) const { return targets_[rank.index()]; }
  /// The refit whose weights the source shards of a tensor hold: that of the instance that moves it.
  std::uint32_t source_version(TensorId tensor) const { return source_version_[tensor.index()]; }

  /// The steps joined in an operation, in order.
  std::span<const ProgramStep> steps(std::uint32_t operation) const;
  /// What an operation moves, step by step; within a step by member. Raises InputError where a step names
  /// bytes that a rank does not have: a plan that check() has proven has none.
  std::vector<Transfer> transfers(std::uint32_t operation) const;

  /// "step 3 of tensor w (send, rank 0 -> rank 4)", of the operation's first step.
  std::string describe(std::uint32_t operation) const;
  std::string describe(ProgramStep which) const;
  /// The step that is to bring an element to a target shard of a rank.
  std::optional<ProgramStep> writer_of(TensorId tensor, const Region& element, Rank rank) const;

 private:
  friend class ProgramBuilder;
  friend class TransferMaker;
  struct StagedBox {
    LocalRank rank;
    Region box;
  };
  struct OwnStaging {
    Rank rank;
    std::int64_t offset = 0;
  };

  /// What a rank has in a buffer of an instance's tensor, piece by piece; none where it has nothing.
  std::vector<Place> places(std::uint32_t index, Rank rank, Buffer buffer) const;
  std::optional<Region> staged_box(const Instance& instance, Rank rank) const;

  const Refit& refit_;
  const Plan& plan_;
  Operations operations_;
  std::vector<std::size_t> first_step_;  // by operation, in steps_
  std::vector<ProgramStep> steps_;
  std::vector<Arena> arenas_;
  std::vector<std::vector<Shard>> sources_, targets_;   // by rank, by tensor
  std::vector<std::vector<StagedBox>> staged_;          // by pattern, sorted by rank
  std::vector<std::vector<OwnStaging>> own_staging_;    // by instance, sorted by rank
  std::vector<std::vector<std::int64_t>> buffer_base_;  // by buffer, by rank; offset in the arena
  std::vector<std::uint32_t> source_version_;           // by tensor
};

}  // namespace isthmus::hw
