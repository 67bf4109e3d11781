#pragma once
// What the bytes of a replay are: a code per element, from which a wrong byte can be told and named.
// Every element of every tensor has an id: ids count all elements of the refit, tensor by tensor, row-major.
// P_m is a permutation of m-bit words (odd multipliers and xor-shifts, each of them invertible), and in
//     word(id, pass) = digit number `pass` of P_m(id + version x odd constant mod 2^m)
// a digit is as wide as the element. With m = code_bits(elements, width) and all code_passes(m, width) digits
// taken in turn, the code is injective in (tensor, element index): two elements that agree in every pass are
// the same element. A single pass is injective where the element has m bits or more (4 bytes for up to 2^32
// elements, 8 bytes always); below, a wrong element has the right word in one pass with probability about
// 2^-(8 width). Versions below 2^m differ at every element.
// Unwritten targets cannot pass: they are poisoned with the complement of the word that is expected there.
// The functions are constexpr and without library containers: kernels on a device use the same ones.

#include <cstdint>

#if defined(__CUDACC__)
#define ISTHMUS_HOST_DEVICE __host__ __device__
#else
#define ISTHMUS_HOST_DEVICE
#endif

namespace isthmus::hw {

/// What staging is poisoned with, byte by byte.
inline constexpr unsigned char staging_poison = 0xDB;

/// The width of the permutation that tells `elements` ids apart, in whole words of `width` bytes
/// (1, 2, 4, 8).
constexpr std::uint32_t code_bits(std::uint64_t elements, std::uint32_t width) {
  const std::uint32_t step = width < 2 ? 16 : 8 * width;
  std::uint32_t bits = step;
  while (bits < 64 && elements > std::uint64_t{1} << bits) bits += step;
  return bits < 64 ? bits : 64;
}

constexpr std::uint32_t code_passes(std::uint32_t bits, std::uint32_t width) { return bits / (8 * width); }

/// The permutation of words of `bits` bits; an even number from 16 to 64.
ISTHMUS_HOST_DEVICE constexpr std::uint64_t permuted(std::uint64_t word, std::uint32_t bits) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  const std::uint32_t half = bits / 2;
  word &= mask;
  word ^= word >> half;
  word = (word * 0xBF58476D1CE4E5B9ULL) & mask;
  word ^= word >> half;
  word = (word * 0x94D049BB133111EBULL) & mask;
  return word ^ (word >> half);
}

/// All that is needed to fill or to judge one shard; a plain value that travels to a device as it is.
/// Dimensions that a tensor does not have stand first, with extent 1.
struct ShardCode {
  std::uint64_t first_id = 0;  // of the shard's first element
  std::uint64_t shift = 0;     // of the version
  std::uint32_t width = 1;     // bytes per element
  std::uint32_t bits = 16;
  std::uint32_t pass = 0;
  std::uint64_t elements = 0;
  std::uint64_t extent[4] = {1, 1, 1, 1};  // of the shard
  std::uint64_t stride[4] = {0, 0, 0, 0};  // of the tensor, in elements
};

ISTHMUS_HOST_DEVICE constexpr std::uint64_t version_shift(std::uint32_t version) {
  return version * 0x9E3779B97F4A7C15ULL;
}

/// The id of the shard's element at a row-major position.
ISTHMUS_HOST_DEVICE constexpr std::uint64_t element_id(const ShardCode& shard, std::uint64_t position) {
  std::uint64_t id = shard.first_id;
  for (int d = 3; d >= 0; --d) {
    if (shard.extent[d] == 1) continue;
    id += position % shard.extent[d] * shard.stride[d];
    position /= shard.extent[d];
  }
  return id;
}

/// The word of an id: its `width` low bytes, the first in memory the lowest.
ISTHMUS_HOST_DEVICE constexpr std::uint64_t code_of_id(const ShardCode& shard, std::uint64_t id) {
  const std::uint64_t digits = permuted(id + shard.shift, shard.bits) >> (8 * shard.width * shard.pass);
  return shard.width == 8 ? digits : digits & ((std::uint64_t{1} << (8 * shard.width)) - 1);
}

ISTHMUS_HOST_DEVICE constexpr std::uint64_t code_word(const ShardCode& shard, std::uint64_t position) {
  return code_of_id(shard, element_id(shard, position));
}

}  // namespace isthmus::hw
