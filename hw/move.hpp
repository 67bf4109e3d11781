#pragma once
// Strided bytes: a box of elements that moves between two row-major boxes, as runs of bytes with up to three
// loops around them. A plain value: kernels on a device take it as it is.
// Invariant: runs are as long as they can be, and neighbouring loops are joined where both sides allow it. So
// a side is in one piece exactly when its innermost loop's stride is a run, and so on outwards.

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/layout.hpp"

namespace isthmus::hw {

/// One dimension of a strided copy; strides in bytes.
struct Loop {
  std::int64_t count = 1, source_stride = 0, target_stride = 0;
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// Runs of bytes, copied from `source` + sum of index x source_stride to the same of the target, for all
/// indices of the loops. Loops stand outermost first; those that are not needed come first and have count 1.
struct Move {
  std::int64_t run = 0;                 // bytes
  std::int64_t source = 0, target = 0;  // offsets of the first byte in the arenas
  std::array<Loop, max_dimensions - 1> loops{};

  std::int64_t runs() const { return loops[0].count * loops[1].count * loops[2].count; }
  std::int64_t bytes() const { return run * runs(); }
  bool source_contiguous() const;  // in one piece
  bool target_contiguous() const;
  friend bool operator==(const Move&, const Move&) = default;
};

/// Where something lies: a box of global element indices, row-major from byte `offset` on.
struct Place {
  Region box;
  std::int64_t offset = 0;
};

/// Moves `region`, which both boxes contain and which is not empty.
Move make_move(const Place& source, const Place& target, const Region& region, Bytes element);

/// Carries a move out. The two memories begin where offset 0 lies; they may be one, if nothing overlaps.
void copy_bytes(const Move& move, const std::byte* source, std::byte* target);
/// The bytes of a move, one after the other in row-major order of its region, from its source into `message`
/// (move.bytes() long), and from there to its target.
void pack_bytes(const Move& move, const std::byte* source, std::byte* message);
void unpack_bytes(const Move& move, const std::byte* message, std::byte* target);

}  // namespace isthmus::hw
