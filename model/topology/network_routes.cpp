#include "model/topology/network_routes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_paths.hpp"

namespace isthmus {
namespace {

constexpr std::uint8_t nowhere = 0xFF;
constexpr std::size_t tiers = 4;  // leaf, spine, core, gateway

std::uint32_t tier_number(VertexKind tier) {
  return static_cast<std::uint32_t>(tier) - static_cast<std::uint32_t>(VertexKind::leaf);
}

/// splitmix64: spreads consecutive numbers evenly.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::string pool_name(const Network& network, std::size_t tier, std::uint32_t first, std::uint32_t number) {
  if (tier == 0) return network.switches[first].name;
  return fmt::format("{} of pod {}", tier == 1 ? "spines" : "cores", number);
}

}  // namespace

NetworkRoutes::NetworkRoutes(const Network& network, const Routing& routing)
    : network_(network), hashed_(routing.hashed), seed_(routing.seed) {
  up_.resize(network.switches.size());
  for (std::uint32_t cable = 0; cable < network.cables.size(); ++cable) {
    up_[network.cables[cable].low].push_back({network.cables[cable].high, cable});
  }
  find_ancestors();
  link_of_cable_.assign(network.cables.size(), 0);
  pools_.resize(network.switches.size());
  if (hashed_) {
    add_wire_links();
  } else {
    find_pools();
  }
}

/// Higher tiers first, so that every switch finds those of the switches above it.
void NetworkRoutes::find_ancestors() {
  const std::size_t count = network_.switches.size();
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return network_.switches[a].tier > network_.switches[b].tier;
  });
  std::map<std::vector<std::uint32_t>, std::uint32_t> class_of_parents;
  class_of_.assign(count, 0);
  for (const std::uint32_t each : order) {
    std::vector<std::uint32_t> parents;
    for (const Up& up : up_[each]) parents.push_back(up.to);
    std::sort(parents.begin(), parents.end());
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
    const auto [known, is_new] =
        class_of_parents.try_emplace(parents, static_cast<std::uint32_t>(ancestors_.size()));
    class_of_[each] = known->second;
    if (!is_new) continue;
    std::vector<std::uint32_t> all = parents;
    for (const std::uint32_t parent : parents) {
      const auto& above = ancestors_[class_of_[parent]];
      all.insert(all.end(), above.begin(), above.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    ancestors_.push_back(std::move(all));
  }
  const auto lowest = [&](const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
    std::uint8_t tier = nowhere;
    for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
      if (*i == *j) {
        tier = std::min(tier, static_cast<std::uint8_t>(tier_number(network_.switches[*i].tier)));
      }
      *i < *j ? ++i : (*j < *i ? ++j : (++i, ++j));
    }
    return tier;
  };
  tier_of_classes_.assign(ancestors_.size(), std::vector<std::uint8_t>(ancestors_.size(), nowhere));
  for (std::size_t a = 0; a < ancestors_.size(); ++a) {
    for (std::size_t b = a; b < ancestors_.size(); ++b) {
      tier_of_classes_[a][b] = tier_of_classes_[b][a] = lowest(ancestors_[a], ancestors_[b]);
    }
  }
}

void NetworkRoutes::find_pools() {
  const auto count = static_cast<std::uint32_t>(network_.switches.size());
  for (std::size_t tier = 0; tier < tiers; ++tier) {
    std::vector<Arc> arcs;
    for (const NetworkCable& cable : network_.cables) {
      if (tier_number(network_.switches[cable.high].tier) <= tier) arcs.push_back({cable.low, cable.high});
    }
    const std::vector<std::uint32_t> pool_of = components(count, arcs);
    add_pool_links(tier, pool_of, count);
  }
}

/// A pool counts on a tier only when it has switches there: what hangs together below it is the same pool.
void NetworkRoutes::add_pool_links(std::size_t tier, const std::vector<std::uint32_t>& pool_of,
                                   std::uint32_t pools) {
  std::vector<std::int64_t> up(pools, 0);
  std::vector<std::uint32_t> first(pools, no_switch);
  for (std::uint32_t i = 0; i < pool_of.size(); ++i) {
    if (tier_number(network_.switches[i].tier) == tier) first[pool_of[i]] = std::min(first[pool_of[i]], i);
  }
  const auto leaves = [&](const NetworkCable& cable) {
    return tier_number(network_.switches[cable.low].tier) <= tier &&
           tier_number(network_.switches[cable.high].tier) > tier && first[pool_of[cable.low]] != no_switch;
  };
  for (const NetworkCable& cable : network_.cables) {
    if (leaves(cable)) up[pool_of[cable.low]] += cable.wire.value * cable.wires;
  }
  std::vector<std::optional<std::uint32_t>> link(pools);
  std::uint32_t number = 0;
  for (std::uint32_t pool = 0; pool < pools; ++pool) {
    if (first[pool] == no_switch) continue;
    const std::string name = pool_name(network_, tier, first[pool], number++);
    if (up[pool] == 0) continue;
    link[pool] = static_cast<std::uint32_t>(links_.size());
    links_.push_back({name + " up-links", LinkClass::switch_uplink, {up[pool]}});
    links_.push_back({name + " down-links", LinkClass::switch_uplink, {up[pool]}});
  }
  for (std::uint32_t i = 0; i < pool_of.size(); ++i) {
    if (first[pool_of[i]] == no_switch || tier_number(network_.switches[i].tier) > tier) continue;
    pools_[i].push_back({static_cast<std::uint32_t>(tier), link[pool_of[i]]});
  }
  for (std::uint32_t cable = 0; cable < network_.cables.size(); ++cable) {
    // A cable belongs to the pool that ends at its lower switch's tier.
    if (tier_number(network_.switches[network_.cables[cable].low].tier) != tier) continue;
    if (leaves(network_.cables[cable])) {
      link_of_cable_[cable] = link[pool_of[network_.cables[cable].low]].value_or(0);
    }
  }
}

void NetworkRoutes::add_wire_links() {
  for (std::uint32_t cable = 0; cable < network_.cables.size(); ++cable) {
    const NetworkCable& each = network_.cables[cable];
    link_of_cable_[cable] = static_cast<std::uint32_t>(links_.size());
    for (std::uint32_t wire = 0; wire < each.wires; ++wire) {
      const std::string& low = network_.switches[each.low].name;
      const std::string& high = network_.switches[each.high].name;
      links_.push_back(
          {fmt::format("wire {} from {} to {}", wire, low, high), LinkClass::switch_uplink, each.wire});
      links_.push_back(
          {fmt::format("wire {} from {} to {}", wire, high, low), LinkClass::switch_uplink, each.wire});
    }
  }
}

bool NetworkRoutes::reaches(std::uint32_t from, std::uint32_t to) const {
  if (from == to) return true;
  const std::vector<std::uint32_t>& above = ancestors_[class_of_[from]];
  return std::binary_search(above.begin(), above.end(), to);
}

std::optional<std::uint32_t> NetworkRoutes::meeting_tier(std::uint32_t from, std::uint32_t to) const {
  if (reaches(from, to)) return tier_number(network_.switches[to].tier);
  if (reaches(to, from)) return tier_number(network_.switches[from].tier);
  const std::uint8_t tier = tier_of_classes_[class_of_[from]][class_of_[to]];
  return tier == nowhere ? std::nullopt : std::optional<std::uint32_t>(tier);
}

std::vector<std::uint32_t> NetworkRoutes::meeting_switches(std::uint32_t from, std::uint32_t to,
                                                           std::uint32_t tier) const {
  if (reaches(from, to)) return {to};
  if (reaches(to, from)) return {from};
  const auto &a = ancestors_[class_of_[from]], &b = ancestors_[class_of_[to]];
  std::vector<std::uint32_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  std::erase_if(common,
                [&](std::uint32_t each) { return tier_number(network_.switches[each].tier) != tier; });
  return common;
}

/// From a switch to one above it, wire by wire as the hash says; `down`: the links of the way back.
void NetworkRoutes::climb(std::uint32_t from, std::uint32_t to, std::uint64_t hash, bool down,
                          std::vector<std::uint32_t>& links) const {
  while (from != to) {
    std::uint32_t wires = 0;
    for (const Up& up : up_[from]) wires += reaches(up.to, to) ? network_.cables[up.cable].wires : 0;
    ISTHMUS_ASSERT(wires > 0, "no way up from switch {} to {}", from, to);
    hash = mixed(hash);
    auto chosen = static_cast<std::uint32_t>(hash % wires);
    for (const Up& up : up_[from]) {
      if (!reaches(up.to, to)) continue;
      if (chosen < network_.cables[up.cable].wires) {
        links.push_back(link_of_cable_[up.cable] + 2 * chosen + (down ? 1 : 0));
        from = up.to;
        break;
      }
      chosen -= network_.cables[up.cable].wires;
    }
  }
}

std::optional<std::vector<std::uint32_t>> NetworkRoutes::route(std::uint32_t from, std::uint32_t to,
                                                               std::uint64_t pair) const {
  std::vector<std::uint32_t> links;
  if (from == to) return links;
  const std::optional<std::uint32_t> tier = meeting_tier(from, to);
  if (!tier) return std::nullopt;
  if (!hashed_) {
    for (const Pool& pool : pools_[from]) {
      if (pool.tier < *tier && pool.up) links.push_back(*pool.up);
    }
    const std::size_t climbed = links.size();
    for (const Pool& pool : pools_[to]) {
      if (pool.tier < *tier && pool.up) links.push_back(*pool.up + 1);
    }
    std::reverse(links.begin() + static_cast<std::ptrdiff_t>(climbed), links.end());
    return links;
  }
  const std::vector<std::uint32_t> meeting = meeting_switches(from, to, *tier);
  const std::uint64_t hash = mixed(seed_ ^ mixed(pair));
  const std::uint32_t top = meeting[hash % meeting.size()];
  climb(from, top, hash, false, links);
  const std::size_t climbed = links.size();
  climb(to, top, mixed(~hash), true, links);
  std::reverse(links.begin() + static_cast<std::ptrdiff_t>(climbed), links.end());
  return links;
}

std::optional<int> NetworkRoutes::hops(std::uint32_t from, std::uint32_t to) const {
  if (from == to) return 1;
  const std::optional<std::uint32_t> tier = meeting_tier(from, to);
  if (!tier) return std::nullopt;
  // Breadth first upwards: a switch may have cables that skip a tier.
  const auto climbs = [&](std::uint32_t start, const std::vector<std::uint32_t>& targets) {
    std::vector<std::uint32_t> border{start};
    for (int steps = 0; !border.empty(); ++steps) {
      for (const std::uint32_t each : border) {
        if (std::find(targets.begin(), targets.end(), each) != targets.end()) return steps;
      }
      std::vector<std::uint32_t> next;
      for (const std::uint32_t each : border) {
        for (const Up& up : up_[each]) next.push_back(up.to);
      }
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      border = std::move(next);
    }
    return 0;
  };
  const std::vector<std::uint32_t> meeting = meeting_switches(from, to, *tier);
  return climbs(from, meeting) + climbs(to, meeting) + 1;
}

}  // namespace isthmus
