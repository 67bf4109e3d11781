#pragma once
// Internal to model/topology/difference*.cpp: what parts of two topologies are called in common, and the
// comparison of two types of blocks.
// Invariant: keys order and tell apart; texts name what stands in the first topology, else in the second.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/topology/finding_list.hpp"
#include "model/topology/names.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

struct VertexKey {
  VertexKind kind = VertexKind::gpu;
  std::optional<std::uint32_t> host{};
  std::uint32_t index = 0;
  friend auto operator<=>(const VertexKey&, const VertexKey&) = default;
};

inline VertexKey key_of(const BlockVertex& vertex) { return {vertex.kind, vertex.host, vertex.index}; }

struct SwitchKey {
  VertexKind tier = VertexKind::leaf;
  std::string name{};         // empty where a tier is aligned by position
  std::uint32_t ordinal = 0;  // among those of equal tier and name
  friend auto operator<=>(const SwitchKey&, const SwitchKey&) = default;

  std::string text() const {
    if (name.empty()) return fmt::format("{} number {}", display_name(tier), ordinal);
    return ordinal == 0 ? name : fmt::format("{} (number {} of that name)", name, ordinal);
  }
};

template <class Value>
void tell(FindingList& found, std::string_view code, std::string_view what, const Value& first,
          const Value& second) {
  if (first == second) return;
  found.add(code, [&] { return fmt::format("{}: {} in the first, {} in the second", what, first, second); });
}

std::map<VertexKey, std::uint32_t> nic_numbers(const Block& block);

/// Blocks of one pair of types: the first of them in the first topology, and how many there are.
struct ComparedBlocks {
  BlockPlace place;
  std::uint64_t times = 1;
};

void compare_types(const Block& first, const Block& second, const ComparedBlocks& where, FindingList& found);

}  // namespace isthmus
