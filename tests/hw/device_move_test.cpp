// The arithmetic of the copying kernel, block by block and unit by unit on the host: the same bytes as the
// moves themselves, each unit once, whatever the number of blocks.

#include "hw/device_move.hpp"

#include <cstring>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::hw {
namespace {

constexpr std::size_t memory_size = 1 << 20;

/// Rows of a box in a larger one, dense on the other side; offsets and runs are multiples of `width`.
Move rows_move(std::mt19937_64& random, std::int64_t width, std::int64_t target) {
  const auto up_to = [&random](std::uint64_t n) { return static_cast<std::int64_t>(1 + random() % n); };
  Move move;
  move.run = width * up_to(300);
  move.source = width * up_to(50);
  move.target = target;
  std::int64_t dense = move.run, wide = move.run;
  for (std::size_t d = 3; d-- > 0;) {
    move.loops[d] = {up_to(5), wide + width * (up_to(3) - 1), dense};
    wide = move.loops[d].count * move.loops[d].source_stride;
    dense = move.loops[d].count * move.loops[d].target_stride;
  }
  return move;
}

/// As the kernel does it.
void run_blocks(const std::vector<DeviceMove>& moves, std::uint32_t tiles, std::uint32_t blocks,
                std::vector<int>& writes, const std::byte* target) {
  const auto count = static_cast<std::uint32_t>(moves.size());
  const std::uint32_t chunk = chunk_of_tiles(tiles, blocks);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    std::uint32_t piece = 0;
    for (std::uint32_t tile = block * chunk; tile < tiles; ++tile) {
      if (tile / chunk % blocks != block) continue;
      piece += move_of_tile(moves.data() + piece, count - piece, tile);
      const DeviceMove& move = moves[piece];
      const std::uint32_t first = (tile - move.first_tile) * DeviceMove::tile_units;
      for (std::uint32_t u = first; u < first + DeviceMove::tile_units && u < move.units; ++u) {
        std::byte* const to = move.target + unit_offset(move, move.target_stride, u);
        std::memcpy(to, move.source + unit_offset(move, move.source_stride, u), move.width);
        for (std::uint32_t b = 0; b < move.width; ++b) ++writes[static_cast<std::size_t>(to - target) + b];
      }
    }
  }
}

TEST(DeviceMove, copies_the_bytes_of_the_moves_once_with_any_number_of_blocks) {
  std::mt19937_64 random(1);
  std::vector<std::byte> source(memory_size), target(memory_size), expected(memory_size);
  for (std::byte& each : source) each = static_cast<std::byte>(random());
  for (int i = 0; i < 60; ++i) {
    const auto width = std::int64_t{1} << random() % 5;
    std::memset(target.data(), 0, memory_size);
    std::memset(expected.data(), 0, memory_size);
    std::vector<DeviceMove> moves;
    std::int64_t used = 0;
    while (moves.size() < 1 + random() % 6) {
      const Move move = rows_move(random, width, used);
      if (used + move.bytes() > std::int64_t{memory_size}) break;
      if (move.source + move.loops[0].count * move.loops[0].source_stride > std::int64_t{memory_size})
        continue;
      used += move.bytes();
      copy_bytes(move, source.data(), expected.data());
      moves.push_back(device_move(move, source.data(), target.data()));
      EXPECT_GE(moves.back().width, width);
    }
    const std::uint32_t tiles = number_tiles(moves.data(), moves.size());
    std::vector<int> writes(memory_size, 0);
    run_blocks(moves, tiles, 1 + static_cast<std::uint32_t>(random() % (2 * tiles + 1)), writes,
               target.data());
    EXPECT_EQ(std::memcmp(target.data(), expected.data(), memory_size), 0);
    for (std::size_t b = 0; b < memory_size; ++b)
      ASSERT_EQ(writes[b], b < static_cast<std::size_t>(used) ? 1 : 0);
  }
}

TEST(DeviceMove, takes_the_widest_words_that_all_of_it_allows) {
  std::vector<std::byte> buffer(4096);
  std::byte* const memory = buffer.data();
  Move move;
  move.run = 64;
  EXPECT_EQ(device_move(move, memory, memory + 1024).width, 16U);
  EXPECT_EQ(device_move(move, memory + 2, memory + 1024).width, 2U);
  move.loops[2] = {2, 72, 64};
  EXPECT_EQ(device_move(move, memory, memory + 1024).width, 8U);
  move.loops[2].count = 1;  // a stride that is not used does not count
  EXPECT_EQ(device_move(move, memory, memory + 1024).width, 16U);
  move.run = 7;
  EXPECT_EQ(device_move(move, memory, memory + 1024).width, 1U);
}

TEST(DeviceMove, has_the_width_that_offsets_say_in_arenas_that_begin_at_multiples_of_16) {
  std::mt19937_64 random(7);
  const std::vector<std::byte> arena(4096);  // allocations begin at such multiples
  std::vector<std::byte> target(4096);
  for (int i = 0; i < 1000; ++i) {
    const auto width = std::int64_t{1} << random() % 5;
    const Move move = rows_move(random, width, width * static_cast<std::int64_t>(random() % 50));
    EXPECT_EQ(unit_width(move), device_move(move, arena.data(), target.data()).width);
    EXPECT_GE(unit_width(move), width);
  }
}

}  // namespace
}  // namespace isthmus::hw
