#include "sim/network.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace isthmus::sim {

std::uint32_t Network::add_resource(std::int64_t capacity) {
  capacities_.push_back(capacity);
  return static_cast<std::uint32_t>(capacities_.size() - 1);
}

std::uint32_t Network::add_class(std::vector<Usage> usages, const Sharing& sharing) {
  classes_.push_back(std::move(usages));
  sharing_.push_back(sharing);
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

std::vector<std::uint32_t> Network::representatives(const std::vector<char>& apart) const {
  using Load = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // (class, weight), ascending
  std::vector<Load> loads(capacities_.size());
  for (std::uint32_t c = 0; c < classes_.size(); ++c) {
    for (const Usage& usage : classes_[c]) loads[usage.resource].emplace_back(c, usage.weight);
  }
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_hash;  // first resources with that hash
  std::vector<std::uint32_t> first(capacities_.size());
  for (std::uint32_t r = 0; r < loads.size(); ++r) {
    first[r] = r;
    if (!apart.empty() && apart[r] != 0) continue;
    std::uint64_t hash = loads[r].size();
    for (const auto& [flow_class, weight] : loads[r]) {
      hash = (hash ^ ((std::uint64_t{flow_class} << 32U) | weight)) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 31U;
    }
    std::vector<std::uint32_t>& candidates = by_hash[hash];
    const auto equal = std::find_if(candidates.begin(), candidates.end(),
                                    [&](std::uint32_t other) { return loads[other] == loads[r]; });
    if (equal != candidates.end()) {
      first[r] = *equal;
    } else {
      candidates.push_back(r);
    }
  }
  return first;
}

Network Network::merged(const std::vector<char>& apart, std::vector<std::uint32_t>& number) const {
  const std::vector<std::uint32_t> first = representatives(apart);
  std::vector<std::int64_t> capacity = capacities_;
  for (std::uint32_t r = 0; r < first.size(); ++r) {
    capacity[first[r]] = std::min(capacity[first[r]], capacities_[r]);
  }
  Network result;
  number.resize(first.size());
  for (std::uint32_t r = 0; r < first.size(); ++r) {
    number[r] = first[r] == r ? result.add_resource(capacity[r]) : number[first[r]];
  }
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    std::vector<Usage> kept;
    for (const Usage& usage : classes_[c]) {
      if (first[usage.resource] == usage.resource) kept.push_back({number[usage.resource], usage.weight});
    }
    result.add_class(std::move(kept), sharing_[c]);
  }
  return result;
}

Fluid Network::fluid() const {
  Fluid fluid;
  for (const std::int64_t capacity : capacities_) fluid.add_resource(capacity);
  for (std::size_t c = 0; c < classes_.size(); ++c) fluid.add_class(classes_[c], sharing_[c]);
  return fluid;
}

}  // namespace isthmus::sim
