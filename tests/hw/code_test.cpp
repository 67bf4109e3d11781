#include "hw/code.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::hw {
namespace {

/// A tensor of so many elements, held whole, as one row.
ShardCode row(std::uint64_t elements, std::uint32_t width, std::uint32_t bits) {
  ShardCode code;
  code.width = width;
  code.bits = bits;
  code.elements = code.extent[3] = elements;
  code.stride[3] = 1;
  return code;
}

TEST(Code, takes_as_many_bits_as_tell_all_elements_apart_in_whole_words) {
  EXPECT_EQ(code_bits(1, 1), 16U);
  EXPECT_EQ(code_bits(65'536, 2), 16U);
  EXPECT_EQ(code_bits(65'537, 2), 32U);
  EXPECT_EQ(code_bits(65'537, 4), 32U);
  EXPECT_EQ(code_bits(std::uint64_t{1} << 32U, 4), 32U);
  EXPECT_EQ(code_bits((std::uint64_t{1} << 32U) + 1, 4), 64U);
  EXPECT_EQ(code_bits((std::uint64_t{1} << 32U) + 1, 2), 48U);
  EXPECT_EQ(code_bits(1, 8), 64U);
  EXPECT_EQ(code_bits(~std::uint64_t{0}, 1), 64U);
  EXPECT_EQ(code_passes(48, 2), 3U);
  EXPECT_EQ(code_passes(64, 8), 1U);
}

TEST(Code, permutes_all_words_of_sixteen_bits) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t word = 0; word < 65'536; ++word) seen.insert(permuted(word, 16));
  EXPECT_EQ(seen.size(), 65'536U);
  EXPECT_EQ(*seen.rbegin(), 65'535U);
}

/// Undoes `permuted` step by step: what can be undone is injective.
std::uint64_t inverse(std::uint64_t word, std::uint32_t bits) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  const auto reciprocal = [](std::uint64_t odd) {
    std::uint64_t result = odd;  // Newton's iteration doubles the right bits: 3, 6, ... 96
    for (int i = 0; i < 5; ++i) result *= 2 - odd * result;
    return result;
  };
  word ^= word >> (bits / 2);
  word = (word * reciprocal(0x94D049BB133111EBULL)) & mask;
  word ^= word >> (bits / 2);
  word = (word * reciprocal(0xBF58476D1CE4E5B9ULL)) & mask;
  return word ^ (word >> (bits / 2));
}

RC_GTEST_PROP(Code, can_be_undone_for_every_width_of_the_permutation, (std::uint64_t word)) {
  for (const std::uint32_t bits : {16U, 32U, 48U, 64U}) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
    RC_ASSERT(inverse(permuted(word, bits), bits) == (word & mask));
  }
}

RC_GTEST_PROP(Code, of_all_passes_together_is_the_permutation, (std::uint64_t id)) {
  for (const std::uint32_t width : {1U, 2U, 4U, 8U}) {
    for (const std::uint64_t elements :
         {std::uint64_t{9}, std::uint64_t{1} << 20U, std::uint64_t{1} << 40U}) {
      ShardCode code = row(elements, width, code_bits(elements, width));
      std::uint64_t all = 0;
      for (code.pass = 0; code.pass < code_passes(code.bits, width); ++code.pass)
        all |= code_of_id(code, id) << (8 * width * code.pass);
      RC_ASSERT(all == permuted(id, code.bits));
    }
  }
}

RC_GTEST_PROP(Code, differs_between_versions_at_every_element, (std::uint64_t id)) {
  const auto first = *rc::gen::inRange<std::uint32_t>(0, 60'000);
  const auto second = *rc::gen::distinctFrom(rc::gen::inRange<std::uint32_t>(0, 60'000), first);
  for (const std::uint32_t bits : {16U, 32U, 48U, 64U}) {
    RC_ASSERT(permuted(id + version_shift(first), bits) != permuted(id + version_shift(second), bits));
  }
}

TEST(Code, of_a_wrong_element_is_right_in_one_pass_as_rarely_as_its_width_says) {
  const ShardCode code = row(1U << 18U, 2, 32);
  std::uint64_t equal = 0;
  for (std::uint64_t shift = 1; shift <= 16; ++shift) {
    for (std::uint64_t id = 0; id < code.elements; ++id)
      equal += code_of_id(code, id) == code_of_id(code, id + shift * 256);
  }
  EXPECT_LE(equal, 3 * 16 * code.elements / 65'536);  // 64 are expected
}

TEST(Code, counts_positions_in_the_shard_and_ids_in_the_tensor) {
  ShardCode code;  // rows 1 and 2, columns 2 to 4 of a tensor [3, 5] whose first element has id 100
  code.extent[2] = 2, code.stride[2] = 5;
  code.extent[3] = 3, code.stride[3] = 1;
  code.first_id = 100 + 1 * 5 + 2;
  EXPECT_EQ(element_id(code, 0), 107U);
  EXPECT_EQ(element_id(code, 2), 109U);
  EXPECT_EQ(element_id(code, 3), 112U);
  EXPECT_EQ(element_id(code, 5), 114U);
}

static_assert(permuted(0, 64) == 0, "usable in constant expressions, as device code needs");

}  // namespace
}  // namespace isthmus::hw
