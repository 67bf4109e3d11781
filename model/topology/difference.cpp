#include "model/topology/difference.hpp"

#include <algorithm>
#include <set>

#include "model/topology/difference_parts.hpp"

namespace isthmus {
namespace {

void compare_whole(const Topology& first, const Topology& second, FindingList& found) {
  const BlockPlace a = block_places(first).back(), b = block_places(second).back();
  tell(found, "count", "blocks", a.block, b.block);
  tell(found, "count", "hosts", a.host, b.host);
  tell(found, "count", "GPUs", a.gpu, b.gpu);
  tell(found, "count", "NICs", a.nic, b.nic);
  tell(found, "known", "GPUs are listed", first.gpus_known, second.gpus_known);
  tell(found, "routing", "PXN", first.routing.pxn, second.routing.pxn);
  tell(found, "routing", "hashing of flows", first.routing.hashed, second.routing.hashed);
  tell(found, "routing", "seed of the hash", first.routing.seed, second.routing.seed);
}

struct TypePair {
  std::size_t block = 0;  // the first of them
  std::uint64_t times = 0;
};

void compare_blocks(const Topology& first, const Topology& second, FindingList& found) {
  const std::vector<BlockPlace> places = block_places(first);
  std::map<std::pair<std::uint32_t, std::uint32_t>, TypePair> pairs;
  for (std::size_t i = 0; i < std::min(first.blocks.size(), second.blocks.size()); ++i) {
    TypePair& pair = pairs[{first.blocks[i], second.blocks[i]}];
    if (pair.times++ == 0) pair.block = i;
  }
  std::vector<std::pair<TypePair, std::pair<std::uint32_t, std::uint32_t>>> in_order;
  for (const auto& [types, pair] : pairs) in_order.emplace_back(pair, types);
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a.first.block < b.first.block; });
  for (const auto& [pair, types] : in_order) {
    compare_types(first.types[types.first], second.types[types.second], {places[pair.block], pair.times},
                  found);
  }
}

/// Switches of both sides under common keys.
class Switches {
 public:
  Switches(const Network& first, const Network& second) {
    const std::set<std::pair<VertexKind, std::string>> a = names(first), b = names(second);
    for (const auto& each : a)
      if (b.count(each) > 0) by_name_.insert(each.first);
    first_ = keys(first);
    second_ = keys(second);
  }
  const std::vector<SwitchKey>& first() const { return first_; }
  const std::vector<SwitchKey>& second() const { return second_; }

 private:
  static std::set<std::pair<VertexKind, std::string>> names(const Network& network) {
    std::set<std::pair<VertexKind, std::string>> all;
    for (const NetworkSwitch& each : network.switches) all.emplace(each.tier, each.name);
    return all;
  }

  std::vector<SwitchKey> keys(const Network& network) const {
    std::map<std::pair<VertexKind, std::string>, std::uint32_t> seen;
    std::vector<SwitchKey> result;
    for (const NetworkSwitch& each : network.switches) {
      const std::string name = by_name_.count(each.tier) > 0 ? each.name : "";
      result.push_back({each.tier, name, seen[{each.tier, name}]++});
    }
    return result;
  }

  std::set<VertexKind> by_name_;  // tiers that share a name
  std::vector<SwitchKey> first_, second_;
};

void compare_switches(const Switches& switches, FindingList& found) {
  const std::set<SwitchKey> a(switches.first().begin(), switches.first().end()),
      b(switches.second().begin(), switches.second().end());
  const auto missing = [&](const SwitchKey& key, std::string_view side) {
    found.add("switch", [&] { return fmt::format("{} is in the {} only", key.text(), side); });
  };
  for (const SwitchKey& key : a)
    if (b.count(key) == 0) missing(key, "first");
  for (const SwitchKey& key : b)
    if (a.count(key) == 0) missing(key, "second");
}

/// Wires by rate between two switches.
using Cables = std::map<std::pair<SwitchKey, SwitchKey>, std::map<Bandwidth, std::uint64_t>>;

Cables cables_of(const Network& network, const std::vector<SwitchKey>& keys) {
  Cables cables;
  for (const NetworkCable& cable : network.cables)
    cables[{keys[cable.low], keys[cable.high]}][cable.wire] += cable.wires;
  return cables;
}

std::string cable_text(const std::map<Bandwidth, std::uint64_t>& wires) {
  std::string text;
  for (const auto& [rate, count] : wires) {
    text += fmt::format("{}{} wires of {}", text.empty() ? "" : " and ", count,
                        rate == Bandwidth{0} ? "unknown rate" : rate_text(rate));
  }
  return text.empty() ? "no wire" : text;
}

void compare_cables(const Cables& first, const Cables& second, FindingList& found) {
  const auto compare = [&](const auto& ends, const auto& a, const auto& b) {
    if (a == b) return;
    found.add("cable", [&, &both = ends] {
      return fmt::format("between {} and {}: {} in the first, {} in the second", both.first.text(),
                         both.second.text(), cable_text(a), cable_text(b));
    });
  };
  for (const auto& [ends, wires] : first) {
    const auto other = second.find(ends);
    compare(ends, wires, other == second.end() ? std::map<Bandwidth, std::uint64_t>{} : other->second);
  }
  for (const auto& [ends, wires] : second)
    if (first.count(ends) == 0) compare(ends, std::map<Bandwidth, std::uint64_t>{}, wires);
}

/// NICs of equal name in blocks of equal position.
void compare_plugs(const Topology& first, const Topology& second, const Switches& switches,
                   FindingList& found) {
  const std::vector<BlockPlace> a = block_places(first), b = block_places(second);
  std::vector<std::map<VertexKey, std::uint32_t>> numbers;  // of the second's types
  for (const Block& type : second.types) numbers.push_back(nic_numbers(type));
  for (std::size_t i = 0; i < std::min(first.blocks.size(), second.blocks.size()); ++i) {
    const Block& block = first.types[first.blocks[i]];
    const auto& other = numbers[second.blocks[i]];
    for (std::size_t nic = 0; nic < block.nics.size(); ++nic) {
      const BlockVertex& vertex = block.vertices[block.nics[nic].vertex];
      const auto same = other.find(key_of(vertex));
      if (same == other.end()) continue;
      const std::uint32_t here = first.switch_of_nic[a[i].nic + nic];
      const std::uint32_t there = second.switch_of_nic[b[i].nic + same->second];
      const SwitchKey* one = here == no_switch ? nullptr : &switches.first()[here];
      const SwitchKey* two = there == no_switch ? nullptr : &switches.second()[there];
      if (one == two || (one != nullptr && two != nullptr && *one == *two)) continue;
      found.add("plug", [&] {
        return fmt::format("{} is plugged into {} in the first, {} in the second", vertex_name(vertex, a[i]),
                           one == nullptr ? "nothing" : one->text(),
                           two == nullptr ? "nothing" : two->text());
      });
    }
  }
}

}  // namespace

std::vector<Finding> topology_difference(const Topology& first, const Topology& second,
                                         std::size_t most_per_code) {
  FindingList found(most_per_code);
  compare_whole(first, second, found);
  compare_blocks(first, second, found);
  const Switches switches(first.network, second.network);
  compare_switches(switches, found);
  compare_cables(cables_of(first.network, switches.first()), cables_of(second.network, switches.second()),
                 found);
  compare_plugs(first, second, switches, found);
  return found.take();
}

}  // namespace isthmus
