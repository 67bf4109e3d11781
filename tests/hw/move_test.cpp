#include "hw/move.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::hw {
namespace {

struct MoveCase {
  Place source, target;
  Region region;
  std::int64_t element = 1;
};

/// A region of one to four dimensions inside two boxes around it.
MoveCase move_case() {
  MoveCase result;
  result.element = std::int64_t{1} << *rc::gen::inRange(0, 4);
  const std::size_t dimensions = *rc::gen::inRange<std::size_t>(1, max_dimensions + 1);
  for (Region* region : {&result.region, &result.source.box, &result.target.box})
    region->dimensions = dimensions;
  const auto slack = [] { return *rc::gen::element<std::int64_t>(0, 0, 1, 2); };
  for (std::size_t d = 0; d < dimensions; ++d) {
    result.region.begin[d] = *rc::gen::inRange<std::int64_t>(2, 5);
    result.region.end[d] = result.region.begin[d] + *rc::gen::inRange<std::int64_t>(1, 4);
    for (Region* box : {&result.source.box, &result.target.box}) {
      box->begin[d] = result.region.begin[d] - slack();
      box->end[d] = result.region.end[d] + slack();
    }
  }
  result.source.offset = *rc::gen::inRange<std::int64_t>(0, 9);
  result.target.offset = *rc::gen::inRange<std::int64_t>(0, 9);
  return result;
}

std::vector<std::byte> memory_of(const Place& place, std::int64_t element) {
  std::vector<std::byte> bytes(to_size(place.offset + place.box.volume() * element));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
  return bytes;
}

/// Where an element stands in a place, by counting.
std::size_t byte_of(const Place& place, const std::vector<std::int64_t>& index, std::int64_t element) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < index.size(); ++d)
    position = position * (place.box.end[d] - place.box.begin[d]) + index[d] - place.box.begin[d];
  return to_size(place.offset + position * element);
}

/// Elements of a region in row-major order.
std::vector<std::vector<std::int64_t>> elements_of(const Region& region) {
  std::vector<std::vector<std::int64_t>> all{{}};
  for (std::size_t d = 0; d < region.dimensions; ++d) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const auto& prefix : all) {
      for (std::int64_t i = region.begin[d]; i < region.end[d]; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

RC_GTEST_PROP(Move, brings_every_element_to_its_place_and_touches_nothing_else, ()) {
  const MoveCase c = move_case();
  const Move move = make_move(c.source, c.target, c.region, {c.element});
  const std::vector<std::byte> source = memory_of(c.source, c.element);
  std::vector<std::byte> target(memory_of(c.target, c.element).size());
  std::vector<std::byte> expected = target;
  for (const auto& index : elements_of(c.region)) {
    std::memcpy(expected.data() + byte_of(c.target, index, c.element),
                source.data() + byte_of(c.source, index, c.element), to_size(c.element));
  }
  copy_bytes(move, source.data(), target.data());
  RC_ASSERT(target == expected);
  RC_ASSERT(move.bytes() == c.region.volume() * c.element);
}

RC_GTEST_PROP(Move, packs_in_row_major_order_of_its_region_and_unpacks_to_the_same_end, ()) {
  const MoveCase c = move_case();
  const Move move = make_move(c.source, c.target, c.region, {c.element});
  const std::vector<std::byte> source = memory_of(c.source, c.element);
  std::vector<std::byte> message(to_size(move.bytes())), expected;
  pack_bytes(move, source.data(), message.data());
  for (const auto& index : elements_of(c.region)) {
    const auto first = source.begin() + static_cast<std::ptrdiff_t>(byte_of(c.source, index, c.element));
    expected.insert(expected.end(), first, first + c.element);
  }
  RC_ASSERT(message == expected);
  std::vector<std::byte> direct(memory_of(c.target, c.element).size()), unpacked = direct;
  copy_bytes(move, source.data(), direct.data());
  unpack_bytes(move, message.data(), unpacked.data());
  RC_ASSERT(unpacked == direct);
}

RC_GTEST_PROP(Move, knows_which_sides_are_in_one_piece, ()) {
  const MoveCase c = move_case();
  const Move move = make_move(c.source, c.target, c.region, {c.element});
  const auto one_piece = [&](const Place& place) {
    const auto all = elements_of(c.region);
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (byte_of(place, all[i], c.element) != byte_of(place, all[i - 1], c.element) + to_size(c.element))
        return false;
    }
    return true;
  };
  RC_ASSERT(move.source_contiguous() == one_piece(c.source));
  RC_ASSERT(move.target_contiguous() == one_piece(c.target));
  RC_ASSERT(!(move.source_contiguous() && move.target_contiguous()) || move.runs() == 1);
}

TEST(Move, joins_what_both_sides_have_next_to_each_other) {
  const auto box = [](std::array<std::int64_t, 4> begin, std::array<std::int64_t, 4> end) {
    return Region{begin, end, 3};
  };
  const Region region = box({0, 0, 2}, {4, 6, 4});
  const Move move = make_move({box({0, 0, 0}, {4, 6, 8}), 0}, {box({0, 0, 2}, {4, 6, 4}), 64}, region, {2});
  EXPECT_EQ(move.run, 4);
  EXPECT_EQ(move.source, 4);
  EXPECT_EQ(move.target, 64);
  EXPECT_EQ(move.loops[2], (Loop{24, 16, 4}));  // two dimensions, one loop
  EXPECT_EQ(move.loops[1], Loop{});
  EXPECT_TRUE(move.target_contiguous());
}

}  // namespace
}  // namespace isthmus::hw
