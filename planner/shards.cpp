#include "planner/shards.hpp"

#include <algorithm>
#include <map>

#include "planner/large_arrays.hpp"

namespace isthmus {

std::vector<Shard> distinct_shards(const Layout& layout) {
  std::vector<Shard> shards;
  std::map<Region, std::size_t> index_of;
  for (std::size_t i = 0; i < layout.mesh.size(); ++i) {
    const Region region = layout.region(i);
    if (region.empty()) continue;
    const auto [known, added] = index_of.emplace(region, shards.size());
    if (added) shards.push_back({region, {}});
    shards[known->second].holders.push_back(layout.mesh.ranks[i].value);
  }
  return shards;
}

Cells cells_of(const Geometry& geometry) {
  Cells cells{distinct_shards(geometry.source), distinct_shards(geometry.target), {}};
  constexpr std::size_t many = std::size_t{1} << 20U;  // more grow as they come
  reserve_large(cells.list, std::min(many, cells.sources.size() * cells.targets.size()));
  for (std::uint32_t t = 0; t < cells.targets.size(); ++t) {
    for (std::uint32_t s = 0; s < cells.sources.size(); ++s)
      if (boxes_meet(cells.sources[s].region, cells.targets[t].region)) cells.list.push_back({s, t});
  }
  return cells;
}

bool sides_overlap(const Geometry& geometry, Rank source_base, Rank target_base) {
  std::vector<std::uint32_t> source;
  for (const Rank rank : geometry.source.mesh.ranks) source.push_back(source_base.value + rank.value);
  std::sort(source.begin(), source.end());
  return std::any_of(geometry.target.mesh.ranks.begin(), geometry.target.mesh.ranks.end(), [&](Rank rank) {
    return std::binary_search(source.begin(), source.end(), target_base.value + rank.value);
  });
}

}  // namespace isthmus
