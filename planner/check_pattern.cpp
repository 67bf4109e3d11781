#include "planner/check_pattern.hpp"

#include <algorithm>

#include "planner/check_bound.hpp"

namespace isthmus {

BoundPattern::BoundPattern(const Pattern& bound_pattern, const Geometry& bound_geometry,
                           const GeometryShards& shards, const RelativeBases& relative_bases)
    : pattern(bound_pattern),
      geometry(bound_geometry),
      bases(relative_bases),
      source_shard(relative_bases.ranks, nullptr),
      target_shard(relative_bases.ranks, nullptr) {
  members.reserve(pattern.members.size());
  for (const std::vector<LocalRank>& list : pattern.members) {
    std::vector<std::uint32_t>& ranks = members.emplace_back();
    ranks.reserve(list.size());
    for (const LocalRank rank : list) ranks.push_back(relative(rank));
    std::sort(ranks.begin(), ranks.end());
  }
  for (std::size_t i = 0; i < shards.source.size(); ++i) {
    source_shard[bases.geometry_source + geometry.source.mesh.ranks[i].value] = &shards.source[i];
  }
  for (std::size_t i = 0; i < shards.target.size(); ++i) {
    target_shard[bases.geometry_target + geometry.target.mesh.ranks[i].value] = &shards.target[i];
  }
}

bool BoundPattern::receives(const Step& step, std::uint32_t rank) const {
  if (!collective(step)) return relative(step.target) == rank;
  const bool root_gets_nothing = step.kind == StepKind::broadcast && step.to == Buffer::target;
  if (root_gets_nothing && relative(step.source) == rank) return false;
  const std::vector<std::uint32_t>& ranks = members[step.members];
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

GeometryShards shards_of(const Geometry& geometry) {
  GeometryShards shards{geometry.source.regions(), geometry.target.regions(), 0, 0, {}, false};
  const std::int64_t volume = whole(geometry.source.shape).volume();
  for (const Region& region : shards.source) shards.sharded |= region.volume() != volume;
  for (const Region& region : shards.target) {
    shards.sharded |= region.volume() != volume;
    shards.target_bytes += geometry.target.bytes(region);
  }
  for (const Rank rank : geometry.source.mesh.ranks)
    shards.source_ranks = std::max(shards.source_ranks, rank.value + 1);
  for (const Rank rank : geometry.target.mesh.ranks)
    shards.target_ranks = std::max(shards.target_ranks, rank.value + 1);
  return shards;
}

PatternExtent extent_of(const Pattern& pattern) {
  PatternExtent extent;
  const auto include = [&extent](LocalRank rank) {
    const bool target = (rank.value & LocalRank::target_side) != 0;
    std::uint64_t& ranks = target ? extent.target_ranks : extent.source_ranks;
    ranks = std::max<std::uint64_t>(ranks, (rank.value & ~LocalRank::target_side) + std::uint64_t{1});
  };
  for (const Step& step : pattern.steps) {
    if (step.kind != StepKind::all_gather) include(step.source);
    if (!collective(step)) include(step.target);
    extent.lanes = std::max<std::uint64_t>(extent.lanes, step.lane + std::uint64_t{1});
    extent.groups = std::max<std::uint64_t>(extent.groups, step.group + std::uint64_t{1});
  }
  for (const std::vector<LocalRank>& list : pattern.members) std::for_each(list.begin(), list.end(), include);
  return extent;
}

Binding bind(const Instance& instance, const PatternExtent& extent, const RefitEntry& entry,
             const GeometryShards& shards) {
  const std::int64_t pattern_source = instance.source_base.value, pattern_target = instance.target_base.value;
  const std::int64_t geometry_source = entry.source_base.value, geometry_target = entry.target_base.value;
  const std::int64_t source_low = std::min(pattern_source, geometry_source);
  const std::int64_t target_low = std::min(pattern_target, geometry_target);
  const std::int64_t source_high = std::max(pattern_source + static_cast<std::int64_t>(extent.source_ranks),
                                            geometry_source + shards.source_ranks);
  const std::int64_t target_high = std::max(pattern_target + static_cast<std::int64_t>(extent.target_ranks),
                                            geometry_target + shards.target_ranks);
  const std::int64_t low = std::min(source_low, target_low);
  const bool disjoint = source_high <= target_low || target_high <= source_low;
  const std::int64_t source_shift = disjoint ? source_low : low;
  const std::int64_t target_shift = disjoint ? target_low - (source_high - source_low) : low;
  const auto narrow = [](std::int64_t rank) { return static_cast<std::uint32_t>(rank); };
  Binding binding;
  binding.bases = {narrow(pattern_source - source_shift), narrow(pattern_target - target_shift),
                   narrow(geometry_source - source_shift), narrow(geometry_target - target_shift),
                   narrow(std::max(source_high - source_shift, target_high - target_shift))};
  binding.first_target = narrow(source_high - source_shift);
  binding.source_shift = source_shift;
  binding.target_shift = target_shift;
  return binding;
}

PatternProof prove_pattern(const Pattern& pattern, const Geometry& geometry, const GeometryShards& shards,
                           const RelativeBases& bases, const TensorDemands& demands, const Limits& limits) {
  PatternProof proof;
  PlanFindings findings{proof, limits.most_violations};
  const BoundPattern bound(pattern, geometry, shards, bases);
  find_form_faults(bound, findings);
  if (proof.malformed) return proof;
  find_unheld_reads(bound, findings);
  find_coverage_faults(bound, findings);
  find_wrong_dtypes(bound, demands.quantised, findings);
  if (demands.install) find_missing_installs(bound, findings);
  find_large_messages(bound, limits.largest_size, findings);
  proof.full_tensor_staged = shards.sharded && stages_full_tensor(bound);
  return proof;
}

}  // namespace isthmus
