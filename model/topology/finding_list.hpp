#pragma once
// Internal to model/topology/*findings.cpp: findings as they are collected, by code, and what "unlike its
// peers" means.
// Invariant: texts of a code keep the order in which they were added; only the first `most` are kept, the
// others counted. Codes come in the order of their first finding.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/topology/names.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

class FindingList {
 public:
  explicit FindingList(std::size_t most) : most_(most) {}

  /// `text` is called only when the finding is kept.
  template <class Text>
  void add(std::string_view code, Text text) {
    Kept& kept = of(code);
    if (kept.texts.size() < most_) kept.texts.push_back(text());
    ++kept.count;
  }

  std::vector<Finding> take() const {
    std::vector<Finding> all;
    for (const Kept& kept : kept_) {
      for (const std::string& text : kept.texts) all.push_back({kept.code, text});
      const std::size_t more = kept.count - kept.texts.size();
      if (more > 0) all.push_back({kept.code, fmt::format("and {} more like these", more)});
    }
    return all;
  }

 private:
  struct Kept {
    std::string code;
    std::vector<std::string> texts;
    std::size_t count = 0;
  };

  Kept& of(std::string_view code) {
    for (Kept& kept : kept_)
      if (kept.code == code) return kept;
    return kept_.emplace_back(Kept{std::string(code), {}, 0});
  }

  std::size_t most_;
  std::vector<Kept> kept_;
};

/// How many peers have each value.
template <class Value>
struct Peers {
  std::map<Value, std::uint64_t> counts{};
  std::uint64_t all = 0;

  void add(const Value& value, std::uint64_t times = 1) {
    counts[value] += times;
    all += times;
  }
  /// The value that more than half of the peers share, or `of_four` of four of at least three.
  std::optional<Value> usual(std::uint64_t of_four) const {
    for (const auto& [value, count] : counts) {
      const bool enough = of_four == 2 ? 2 * count > all : 4 * count >= of_four * all;
      if (enough && all >= 3 && count < all) return value;
    }
    return std::nullopt;
  }
};

/// One type of blocks, and the first block of it.
struct BlockFindings {
  const Block& block;
  BlockPlace place;
  std::uint64_t times = 1;     // how many blocks of it there are
  bool several_hosts = false;  // in the fabric

  std::string name(std::uint32_t vertex) const { return vertex_name(block.vertices[vertex], place); }
  std::string host_name(std::uint32_t host) const { return fmt::format("host {}", place.host + host); }
  /// What a text ends with.
  std::string elsewhere() const {
    return times == 1 ? "" : fmt::format("; so in all {} blocks of type '{}'", times, block.name);
  }
};

void find_in_block(const BlockFindings& where, FindingList& findings);
void find_in_rates(const BlockFindings& where, FindingList& findings);
void find_in_network(const Topology& topology, FindingList& findings);

}  // namespace isthmus
