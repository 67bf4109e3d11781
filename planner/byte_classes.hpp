#pragma once
// The bytes of a refit by who has them and who needs them. A class is all bytes, of all tensors together,
// with the same holders H, the same receivers R and the same stage; a receiver that is a holder needs
// nothing and is left out. So a model of half a million transfers is some thousands of classes.
// Invariants: sets are interned (equal sets have equal numbers), ascending, of GPUs; no class is without
// bytes or receivers; copies (ties, repeated experts) count no bytes, since a plan may take their elements
// from what has arrived already.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

class GpuSets {
 public:
  /// The number of the set of these GPUs, in any order, repeated or not.
  std::uint32_t intern(std::vector<std::uint32_t> gpus);
  std::span<const std::uint32_t> operator[](std::uint32_t set) const {
    return {gpus_.data() + begin_[set], begin_[set + 1] - begin_[set]};
  }
  std::size_t size() const { return begin_.size() - 1; }

 private:
  std::vector<std::uint32_t> gpus_;
  std::vector<std::size_t> begin_{0};
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

struct ByteClass {
  std::uint32_t holders = 0, receivers = 0;  // numbers of sets
  std::int32_t stage = 0;
  Bytes bytes;
};

struct ByteClasses {
  GpuSets sets;
  std::vector<ByteClass> list;  // by first appearance
};

ByteClasses byte_classes(const Refit& refit);

/// The same with stages merged: one class per pair of sets.
std::vector<ByteClass> without_stages(const ByteClasses& classes);

/// Per GPU, whether a transfer may start, end or be relayed there: with Relay::members the GPUs of both
/// sides, else all.
std::vector<char> taking_part(const Refit& refit);

}  // namespace isthmus
