#include "hw/device_move.hpp"

namespace isthmus::hw {
namespace {

/// Largest of 16, 8, 4, 2, 1 that divides all that `bits` was made of.
std::uint32_t widest(std::uint64_t bits) {
  std::uint32_t width = 16;
  while (bits % width != 0) width /= 2;
  return width;
}

/// All that the width of a copy's units divides, beside its addresses.
std::uint64_t length_bits(const Move& move) {
  auto bits = static_cast<std::uint64_t>(move.run);
  for (const Loop& loop : move.loops) {
    if (loop.count == 1) continue;
    bits |= static_cast<std::uint64_t>(loop.source_stride) | static_cast<std::uint64_t>(loop.target_stride);
  }
  return bits;
}

}  // namespace

std::uint32_t unit_width(const Move& move) {
  return widest(static_cast<std::uint64_t>(move.source) | static_cast<std::uint64_t>(move.target) |
                length_bits(move));
}

DeviceMove device_move(const Move& move, const std::byte* source_base, std::byte* target_base) {
  DeviceMove result;
  result.source = source_base + move.source;
  result.target = target_base + move.target;
  const std::uint64_t addresses =
      reinterpret_cast<std::uintptr_t>(result.source) | reinterpret_cast<std::uintptr_t>(result.target);
  for (std::size_t d = 0; d < 3; ++d) {
    result.count[d] = static_cast<std::uint32_t>(move.loops[d].count);
    if (move.loops[d].count == 1) continue;
    result.source_stride[d] = move.loops[d].source_stride;
    result.target_stride[d] = move.loops[d].target_stride;
  }
  result.width = widest(addresses | length_bits(move));
  result.units_per_run = static_cast<std::uint32_t>(move.run / result.width);
  result.units = static_cast<std::uint32_t>(move.bytes() / result.width);
  return result;
}

std::uint32_t number_tiles(DeviceMove* moves, std::size_t count) {
  std::uint32_t tiles = 0;
  for (std::size_t i = 0; i < count; ++i) {
    moves[i].first_tile = tiles;
    tiles += (moves[i].units + DeviceMove::tile_units - 1) / DeviceMove::tile_units;
  }
  return tiles;
}

}  // namespace isthmus::hw
