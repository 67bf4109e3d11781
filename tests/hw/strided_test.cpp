// Cutting, packing and unpacking move the same bytes as the move that they come from.

#include "hw/strided.hpp"

#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::hw {
namespace {

using Memory = std::vector<std::byte>;

/// A move between two boxes that are larger than it, at random.
Move random_move(std::mt19937_64& random) {
  Move move;
  move.run = 1 + static_cast<std::int64_t>(random() % 9);
  std::int64_t source = move.run, target = move.run;
  for (std::size_t d = 3; d-- > 0;) {
    move.loops[d] = {1 + static_cast<std::int64_t>(random() % 4),
                     source + static_cast<std::int64_t>(random() % 5),
                     target + static_cast<std::int64_t>(random() % 2)};
    source = move.loops[d].count * move.loops[d].source_stride;
    target = move.loops[d].count * move.loops[d].target_stride;
  }
  move.source = static_cast<std::int64_t>(random() % 7);
  move.target = static_cast<std::int64_t>(random() % 7);
  return move;
}

Memory counted() {
  Memory memory(20000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 2654435761U >> 24U);
  return memory;
}

Memory moved(const Move& move) {
  Memory target(20000, std::byte{0});
  copy_bytes(move, counted().data(), target.data());
  return target;
}

TEST(Strided, parts_are_small_enough_and_together_the_whole) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const Move move = random_move(random);
    const auto limit = 1 + static_cast<std::int64_t>(random() % 40);
    std::vector<Move> parts;
    cut(move, limit, parts);
    Memory target(20000, std::byte{0});
    std::int64_t bytes = 0;
    for (const Move& part : parts) {
      EXPECT_LE(part.bytes(), limit);
      bytes += part.bytes();
      copy_bytes(part, counted().data(), target.data());
    }
    EXPECT_EQ(bytes, move.bytes());
    EXPECT_TRUE(target == moved(move));
  }
}

TEST(Strided, packing_and_unpacking_are_the_move_by_way_of_one_piece) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const Move move = random_move(random);
    Memory message(20000, std::byte{0}), target(20000, std::byte{0});
    const Move first = packed(move, 100), second = unpacked(move, 100);
    EXPECT_TRUE(first.target_contiguous());
    EXPECT_TRUE(second.source_contiguous());
    copy_bytes(first, counted().data(), message.data());
    copy_bytes(second, message.data(), target.data());
    EXPECT_TRUE(target == moved(move));
    const Memory expected = moved(move);
    Memory onwards(20000, std::byte{0});
    copy_bytes(onward(move, packed(move, 3)), expected.data(), onwards.data());
    EXPECT_TRUE(onwards == moved(packed(move, 3)));
  }
}

}  // namespace
}  // namespace isthmus::hw
