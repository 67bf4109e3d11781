#include "model/topology/own_nics.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "model/topology/host_paths.hpp"

namespace isthmus {
namespace {

/// The first plugged port of each card.
std::vector<std::uint32_t> cards(const Block& block, const std::vector<char>& plugged) {
  std::vector<std::uint32_t> first;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // (host, card)
  for (std::uint32_t nic = 0; nic < block.nics.size(); ++nic) {
    const std::uint32_t host = block.vertices[block.nics[nic].vertex].host.value_or(0);
    if (!plugged.empty() && !plugged[nic]) continue;
    if (seen.insert({host, block.nics[nic].card}).second) first.push_back(nic);
  }
  return first;
}

std::uint32_t bit_reversed(std::uint32_t number, std::uint32_t power_of_two) {
  std::uint32_t reversed = 0;
  for (std::uint32_t bit = 1; bit < power_of_two; bit <<= 1) {
    reversed = reversed << 1 | static_cast<std::uint32_t>((number & bit) != 0);
  }
  return reversed;
}

}  // namespace

std::vector<std::optional<std::uint32_t>> own_nics(const Block& block, const std::vector<char>& plugged) {
  const std::vector<std::uint32_t> usable = cards(block, plugged);
  const HostPaths paths(block);
  std::vector<std::vector<std::uint32_t>> nearest(block.gpus.size());
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    const std::uint32_t vertex = block.gpus[gpu].vertex;
    const auto to = paths.from(vertex);
    std::uint32_t least = ~0u;
    for (const std::uint32_t nic : usable) {
      const std::uint32_t port = block.nics[nic].vertex;
      if (block.vertices[port].host != block.vertices[vertex].host || !to[port]) continue;
      if (to[port]->cost < least) nearest[gpu].clear();
      least = std::min(least, to[port]->cost);
      if (to[port]->cost == least) nearest[gpu].push_back(nic);
    }
  }
  std::vector<std::optional<std::uint32_t>> own(block.gpus.size());
  for (std::uint32_t gpu = 0; gpu < own.size(); ++gpu) {
    const std::optional<std::uint32_t> told = block.gpus[gpu].nic;
    if (told && (plugged.empty() || plugged[*told])) {
      own[gpu] = told;
      continue;
    }
    if (nearest[gpu].empty()) continue;
    const std::vector<std::uint32_t>& list = nearest[gpu];
    const auto shares = [&](const std::vector<std::uint32_t>& other) {
      return std::find(other.begin(), other.end(), list.front()) != other.end();
    };
    const auto sharers = static_cast<std::uint32_t>(std::count_if(nearest.begin(), nearest.end(), shares));
    const auto size = static_cast<std::uint32_t>(list.size());
    std::uint32_t i = block.vertices[block.gpus[gpu].vertex].index % sharers;
    if (std::has_single_bit(size)) i = bit_reversed(i % size, size);
    own[gpu] = list[i % size];
  }
  return own;
}

}  // namespace isthmus
