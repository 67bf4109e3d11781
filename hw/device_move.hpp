#pragma once
// Strided copies as the kernels of a device do them, in plain functions that a host can test. A copy is a
// number of units, the widest words (16 bytes at best) that its addresses, strides and runs are multiples of.
// Unit u lies in run u / units_per_run; runs count in row-major order of the loops. Tiles of `tile_units`
// units are numbered through all copies of a list and dealt out in chunks: block b of B takes chunks b,
// b + B, b + 2 B, ... So all blocks write near each other.
// Invariant: a copy has fewer than 2^31 units, and at least one.

#include <cstddef>
#include <cstdint>

#include "hw/code.hpp"
#include "hw/move.hpp"

namespace isthmus::hw {

struct DeviceMove {
  static constexpr std::uint32_t tile_units = 2048;

  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::int64_t source_stride[3] = {0, 0, 0}, target_stride[3] = {0, 0, 0};  // bytes, outermost first
  std::uint32_t count[3] = {1, 1, 1};
  std::uint32_t units_per_run = 0;
  std::uint32_t units = 0;
  std::uint32_t width = 16;      // bytes of a unit: 16, 8, 4, 2 or 1
  std::uint32_t first_tile = 0;  // of all tiles of the list
};

/// The copy for the device; `first_tile` is left to number_tiles.
DeviceMove device_move(const Move& move, const std::byte* source_base, std::byte* target_base);
/// The width of its units, for arenas that begin at multiples of 16 bytes.
std::uint32_t unit_width(const Move& move);
/// Numbers the tiles of `count` copies; returns how many there are.
std::uint32_t number_tiles(DeviceMove* moves, std::size_t count);

/// From a copy's first byte to a unit, with the strides of either side.
ISTHMUS_HOST_DEVICE constexpr std::int64_t unit_offset(const DeviceMove& move, const std::int64_t* stride,
                                                       std::uint32_t unit) {
  std::uint32_t run = unit / move.units_per_run;
  const std::int64_t within = static_cast<std::int64_t>(unit - run * move.units_per_run) * move.width;
  if (run == 0) return within;
  const std::uint32_t inner = run % move.count[2];
  run /= move.count[2];
  const std::uint32_t middle = run % move.count[1];
  const std::uint32_t outer = run / move.count[1];
  return within + outer * stride[0] + middle * stride[1] + inner * stride[2];
}

/// The copy that a tile belongs to: the last one that does not begin behind it.
ISTHMUS_HOST_DEVICE constexpr std::uint32_t move_of_tile(const DeviceMove* moves, std::uint32_t count,
                                                         std::uint32_t tile) {
  std::uint32_t low = 0, high = count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (moves[middle].first_tile <= tile) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Tiles in a chunk: 7 (224 KiB), fewer where blocks would have less than four chunks each. Odd, for blocks
/// at distances of a power of two meet in few of the memory's channels: with chunks of 8 tiles an H200
/// copied 389 GB/s, with 7 and with long stretches about 1,600.
ISTHMUS_HOST_DEVICE constexpr std::uint32_t chunk_of_tiles(std::uint32_t tiles, std::uint32_t blocks) {
  const std::uint32_t share = tiles / (4 * blocks);
  return share >= 7 ? 7 : share < 1 ? 1 : (share - 1) / 2 * 2 + 1;
}

}  // namespace isthmus::hw
