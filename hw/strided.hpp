#pragma once
// Arithmetic on strided copies (Move of hw/move.hpp).
// Invariant: `packed` and `unpacked` put contiguous memory on one side, in row-major order of the loops, so
// both ends of a message agree on where each run lies.

#include <cstdint>
#include <vector>

#include "hw/program.hpp"

namespace isthmus::hw {

/// The same bytes in parts of at most `limit` bytes, in row-major order. Moves that differ only in offsets
/// and strides are cut alike. Requires limit > 0.
void cut(const Move& move, std::int64_t limit, std::vector<Move>& parts);
/// From where `move` reads to one piece at `target`.
Move packed(const Move& move, std::int64_t target);
/// From one piece at `source` to where `move` writes.
Move unpacked(const Move& move, std::int64_t source);
/// From where `first` writes to where `second` does. Requires equal runs and counts.
Move onward(const Move& first, const Move& second);

}  // namespace isthmus::hw
