#pragma once
// Which resource to look at next: a set of resources, lowest level first. Levels are taken when a resource is
// added and kept in buckets, 1,024 per octave, so resources whose levels differ by less than 0.1 % may come
// in any order; strict() asks for the lowest of the bucket. Invariant: a resource is in the set at most once
// (the caller keeps the flag).

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace isthmus::sim {

class LevelOrder {
 public:
  void resize(std::size_t resources) {
    next_.resize(resources);
    level_.resize(resources);
    first_.assign(buckets, none);
  }
  void strict(bool on) { strict_ = on; }
  bool empty() const { return size_ == 0; }

  void add(std::uint32_t resource, std::uint64_t level) {
    const std::size_t bucket = bucket_of(level);
    next_[resource] = first_[bucket];
    level_[resource] = level;
    first_[bucket] = resource;
    words_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
    summary_[bucket / 4096] |= std::uint64_t{1} << (bucket / 64 % 64);
    lowest_word_ = std::min(lowest_word_, bucket / 64);
    ++size_;
  }

  /// Takes a lowest one out. Requires that the set is not empty.
  std::uint32_t pop() {
    if (words_[lowest_word_] == 0) find_lowest();
    const std::size_t word = lowest_word_, bucket = word * 64 + lowest_bit(words_[word]);
    std::uint32_t* link = &first_[bucket];
    if (strict_) {
      for (std::uint32_t* other = link; *other != none; other = &next_[*other]) {
        if (level_[*other] < level_[*link]) link = other;
      }
    }
    const std::uint32_t resource = *link;
    *link = next_[resource];
    --size_;
    if (first_[bucket] == none) {
      words_[word] &= words_[word] - 1;
      if (words_[word] == 0) summary_[word / 64] &= ~(std::uint64_t{1} << (word % 64));
    }
    return resource;
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr unsigned bits = 10;
  static constexpr std::size_t buckets = (64 - bits + 1) << bits;

  static std::size_t bucket_of(std::uint64_t level) {
    if (level >> bits == 0) return level;
    const auto octave = static_cast<unsigned>(std::bit_width(level)) - 1 - bits;
    return (std::size_t{octave} << bits) + (level >> octave);
  }
  /// Mostly the next one is close to the last.
  void find_lowest() {
    std::size_t part = lowest_word_ / 64;
    while (summary_[part] == 0) ++part;
    lowest_word_ = part * 64 + lowest_bit(summary_[part]);
  }
  static std::size_t lowest_bit(std::uint64_t word) {
    return static_cast<std::size_t>(std::countr_zero(word));
  }

  std::vector<std::uint32_t> next_, first_;  // by resource; by bucket
  std::vector<std::uint64_t> level_;         // by resource, when it was added
  std::array<std::uint64_t, buckets / 64> words_{};
  std::array<std::uint64_t, (buckets + 4095) / 4096> summary_{};
  std::size_t lowest_word_ = 0;  // none below it has a bit
  std::size_t size_ = 0;
  bool strict_ = false;
};

}  // namespace isthmus::sim
