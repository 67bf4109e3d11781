#pragma once
// Internal to planner/rounds.cpp: which pair two ports form, and for each port the set of ports of the other
// direction that it could be matched with in a round, as bits. Ports are numbered senders first, then
// receivers; a column is a port's number within its direction. Invariant: before `resize`, and where it is
// never called, all sets are empty.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

/// The pairs by their two ports: a matrix, or where that would be large a hash table.
class PairIndex {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  void resize(std::size_t ports) {
    width_ = ports;
    if (ports * ports <= most_entries) matrix_.assign(ports * ports, none);
  }
  bool dense() const { return !matrix_.empty(); }
  std::uint32_t& at(std::uint32_t source, std::uint32_t target) {
    if (dense()) return matrix_[source * width_ + target];
    return table_.try_emplace((std::uint64_t{source} << 32U) | target, none).first->second;
  }
  /// Of a matrix only.
  std::uint32_t known(std::uint32_t source, std::uint32_t target) const {
    return matrix_[source * width_ + target];
  }

 private:
  static constexpr std::size_t most_entries = std::size_t{1} << 24U;  // 64 MiB
  std::size_t width_ = 0;
  std::vector<std::uint32_t> matrix_;
  std::unordered_map<std::uint64_t, std::uint32_t> table_;
};

/// For each port the set of ports of the other direction that it could be matched with, as bits.
class PortSets {
 public:
  void resize(std::size_t columns) {
    words_ = (columns + 63) / 64;
    for (auto* bits : {&any_, &whole_, &deep_}) bits->assign(2 * columns * words_, 0);
    for (auto& bits : free_) bits.assign(words_, 0);
  }

  /// any: transfers are ready; whole: as many as a round may take; deep: others wait for the first of them.
  void set(std::uint32_t port, std::uint32_t column, bool any, bool whole, bool deep) {
    assign(any_, port, column, any);
    assign(whole_, port, column, whole);
    assign(deep_, port, column, deep);
  }

  void clear_free() {
    for (auto& bits : free_) std::fill(bits.begin(), bits.end(), 0);
  }
  void enter(std::size_t side, std::uint32_t column) {
    if (words_ > 0) free_[side][column / 64] |= bit(column);
  }
  void leave(std::size_t side, std::uint32_t column) {
    if (words_ > 0) free_[side][column / 64] &= ~bit(column);
  }

  std::size_t candidates(std::uint32_t port, std::size_t side, bool partial) const {
    std::size_t count = 0;
    const std::uint64_t* row = row_of(partial ? any_ : whole_, port);
    for (std::size_t w = 0; w < words_; ++w) count += to_size(std::popcount(row[w] & free_[side][w]));
    return count;
  }
  bool any_deep(std::uint32_t port, std::size_t side) const {
    const std::uint64_t* row = row_of(deep_, port);
    for (std::size_t w = 0; w < words_; ++w)
      if ((row[w] & free_[side][w]) != 0) return true;
    return false;
  }
  bool candidate(std::uint32_t port, std::uint32_t column, bool partial) const {
    return (row_of(partial ? any_ : whole_, port)[column / 64] & bit(column)) != 0;
  }
  template <class Visit>
  void for_each_candidate(std::uint32_t port, std::size_t side, bool partial, Visit visit) const {
    const std::uint64_t* row = row_of(partial ? any_ : whole_, port);
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t left = row[w] & free_[side][w]; left != 0; left &= left - 1)
        visit(static_cast<std::uint32_t>(w * 64 + to_size(std::countr_zero(left))));
  }

 private:
  using Bits = std::vector<std::uint64_t>;
  static std::uint64_t bit(std::uint32_t column) { return std::uint64_t{1} << (column % 64); }
  const std::uint64_t* row_of(const Bits& bits, std::uint32_t port) const {
    return bits.data() + port * words_;
  }
  void assign(Bits& bits, std::uint32_t port, std::uint32_t column, bool value) {
    std::uint64_t& word = bits[port * words_ + column / 64];
    word = value ? word | bit(column) : word & ~bit(column);
  }

  std::size_t words_ = 0;
  Bits any_, whole_, deep_;  // by port
  Bits free_[2];             // senders and receivers with budget left
};

}  // namespace isthmus
