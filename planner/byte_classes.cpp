#include "planner/byte_classes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/large_arrays.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

/// Tensors with equal geometry and bases count as one with a multiplicity.
using BundleKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t>;

std::map<BundleKey, std::int64_t> bundles_of(const Refit& refit) {
  std::map<BundleKey, std::int64_t> bundles;
  for (const RefitEntry& entry : refit.tensors) {
    if (entry.tensor.copy) continue;
    ++bundles[{entry.geometry, entry.source_base.value, entry.target_base.value, entry.stage}];
  }
  return bundles;
}

class Collector {
 public:
  explicit Collector(const Refit& refit) : refit_(refit) {}

  ByteClasses run() {
    std::optional<std::uint32_t> known;
    Cells cells;
    const std::map<BundleKey, std::int64_t> bundles = bundles_of(refit_);
    for (const auto& [key, count] : bundles) {
      const auto& [geometry, source_base, target_base, stage] = key;
      if (known != geometry) cells = cells_of(refit_.geometries[geometry]);  // keys ascend by geometry
      known = geometry;
      const std::vector<std::uint32_t> holders = sets_of(cells.sources, source_base);
      const std::vector<std::uint32_t> receivers = sets_of(cells.targets, target_base);
      const Layout& layout = refit_.geometries[geometry].source;
      const bool alone = bundles.size() == 1 && all_differ(holders) && all_differ(receivers);
      if (alone) reserve_large(result_.list, cells.list.size());
      for (const Cell cell : cells.list) {
        const Bytes bytes = layout.bytes(cells.region(cell)) * count;
        if (alone) {
          result_.list.push_back({holders[cell.source], receivers[cell.target], stage, bytes});
        } else {
          add(holders[cell.source], receivers[cell.target], stage, bytes);
        }
      }
    }
    return finish();
  }

 private:
  std::vector<std::uint32_t> sets_of(const std::vector<Shard>& shards, std::uint32_t base) {
    std::vector<std::uint32_t> sets;
    sets.reserve(shards.size());
    for (const Shard& shard : shards) {
      std::vector<std::uint32_t> gpus;
      gpus.reserve(shard.holders.size());
      for (const std::uint32_t local : shard.holders) gpus.push_back(refit_.gpu_of_rank[base + local].value);
      sets.push_back(result_.sets.intern(std::move(gpus)));
    }
    return sets;
  }

  /// Then no two cells have the same two sets.
  static bool all_differ(std::vector<std::uint32_t> sets) {
    std::sort(sets.begin(), sets.end());
    return std::adjacent_find(sets.begin(), sets.end()) == sets.end();
  }

  void add(std::uint32_t holders, std::uint32_t receivers, std::int32_t stage, Bytes bytes) {
    const std::uint64_t key = std::uint64_t{holders} << 40U | std::uint64_t{receivers} << 16U |
                              (static_cast<std::uint64_t>(stage) & 0xFFFFU);
    const auto [known, added] = index_.try_emplace(key, result_.list.size());
    if (added) result_.list.push_back({holders, receivers, stage, {}});
    result_.list[known->second].bytes += bytes;
  }

  /// Takes the holders out of the receivers, and drops what nobody needs.
  ByteClasses finish() {
    std::size_t moving = 0;
    std::vector<std::uint32_t> needy;
    for (ByteClass each : result_.list) {
      const auto holders = result_.sets[each.holders], receivers = result_.sets[each.receivers];
      needy.clear();
      std::set_difference(receivers.begin(), receivers.end(), holders.begin(), holders.end(),
                          std::back_inserter(needy));
      if (needy.empty() || each.bytes.value == 0) continue;
      if (needy.size() < receivers.size()) each.receivers = result_.sets.intern(needy);
      result_.list[moving++] = each;
    }
    result_.list.resize(moving);
    return std::move(result_);
  }

  const Refit& refit_;
  ByteClasses result_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
};

}  // namespace

std::uint32_t GpuSets::intern(std::vector<std::uint32_t> gpus) {
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const std::uint32_t gpu : gpus) hash = (hash ^ gpu) * 0x100000001B3;
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    const auto other = (*this)[each->second];
    if (std::equal(other.begin(), other.end(), gpus.begin(), gpus.end())) return each->second;
  }
  const auto number = static_cast<std::uint32_t>(size());
  gpus_.insert(gpus_.end(), gpus.begin(), gpus.end());
  begin_.push_back(gpus_.size());
  by_hash_.emplace(hash, number);
  return number;
}

ByteClasses byte_classes(const Refit& refit) { return Collector(refit).run(); }

std::vector<ByteClass> without_stages(const ByteClasses& classes) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index;
  std::vector<ByteClass> merged;
  for (const ByteClass& each : classes.list) {
    const auto [known, added] = index.try_emplace({each.holders, each.receivers}, merged.size());
    if (added) merged.push_back({each.holders, each.receivers, 0, {}});
    merged[known->second].bytes += each.bytes;
  }
  return merged;
}

std::vector<char> taking_part(const Refit& refit) {
  const bool members_only = refit.settings.relay == Relay::members;
  std::vector<char> part(refit.fabric.gpu_count(), members_only ? 0 : 1);
  if (!members_only) return part;
  for (const RefitEntry& entry : refit.tensors) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    for (const Rank rank : geometry.source.mesh.ranks) {
      part[refit.gpu_of_rank[entry.source_base.value + rank.value].index()] = 1;
    }
    for (const Rank rank : geometry.target.mesh.ranks) {
      part[refit.gpu_of_rank[entry.target_base.value + rank.value].index()] = 1;
    }
  }
  return part;
}

}  // namespace isthmus
