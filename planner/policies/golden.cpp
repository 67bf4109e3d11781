// NeMo RL's functional reference: every distinct source region is broadcast by its first holder to the whole
// group, one after another, until each rank of the group has the full tensor; then each target rank takes its
// region out. The group: the training ranks of the owning stage and all generation ranks; of a bare tensor,
// its own ranks. A source that every rank holds whole is one region, hence one broadcast.
// Regions are those of the layouts' own chunk rules. (The reference cuts by the balanced rule whatever the
// layouts say, so it cannot judge uneven ones.) Not in the plan: the reference receives into a buffer of the
// region and pastes from there, which costs memory and time of the GPU, not of the wire. Misc tensors of a
// whole refit follow in packets (stage_streams.hpp): the switch replaces the reshard, not the hybrid.

#include <algorithm>

#include "planner/policies/stage_streams.hpp"
#include "planner/policy.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

/// Each rank of the tensor's group once.
std::vector<LocalRank> golden_group(const Refit& refit, const Geometry& geometry, const RefitEntry& entry) {
  std::vector<LocalRank> group;
  if (refit.train_ranks > 0) {
    const std::size_t stage_ranks = refit.train_ranks / to_size(refit.stages);
    for (std::size_t r = 0; r < stage_ranks; ++r) group.push_back(LocalRank::source(r));
    for (std::size_t r = 0; r < refit.generate_ranks; ++r) group.push_back(LocalRank::target(r));
    return group;
  }
  std::vector<std::uint32_t> sources;
  for (const Rank rank : geometry.source.mesh.ranks) {
    group.push_back(LocalRank::source(rank.value));
    sources.push_back(entry.source_base.value + rank.value);
  }
  std::sort(sources.begin(), sources.end());
  for (const Rank rank : geometry.target.mesh.ranks) {
    if (!std::binary_search(sources.begin(), sources.end(), entry.target_base.value + rank.value))
      group.push_back(LocalRank::target(rank.value));
  }
  return group;
}

void add_broadcasts(const Geometry& geometry, Pattern& pattern) {
  for (const Shard& shard : distinct_shards(geometry.source)) {
    Step step;
    step.kind = StepKind::broadcast;
    step.parts = 0;  // no exporter hands out tensors one by one
    step.to = Buffer::staging;
    step.group = static_cast<std::uint32_t>(pattern.steps.size());
    step.source = LocalRank::source(shard.holders.front());
    step.region = shard.region;
    pattern.steps.push_back(step);
  }
}

/// All in the group after the last broadcast.
void add_unpacks(const Geometry& geometry, const RefitEntry& entry, Pattern& pattern) {
  const auto broadcasts = static_cast<std::uint32_t>(pattern.steps.size());
  SafeGroups groups(broadcasts);
  for (const Shard& shard : distinct_shards(geometry.target)) {
    for (const Region& piece : message_pieces(geometry.target, shard.region)) {
      const auto after_begin = static_cast<std::uint32_t>(pattern.after.size());
      for (std::uint32_t b = 0; b < broadcasts; ++b)
        if (!intersect(pattern.steps[b].region, piece).empty()) pattern.after.push_back(b);
      Step step;
      step.kind = StepKind::unpack;
      step.from = Buffer::staging;
      step.region = piece;
      step.after_begin = after_begin;
      step.after_end = static_cast<std::uint32_t>(pattern.after.size());
      for (const std::uint32_t holder : shard.holders) {
        step.source = step.target = LocalRank::target(holder);
        step.group = groups.place(entry.target_base.value + holder, entry.target_base.value + holder);
        pattern.steps.push_back(step);
      }
    }
  }
}

}  // namespace

PlanResult plan_golden(const Refit& refit) {
  return plan_hybrid("golden", refit, [&refit](const Geometry& geometry, const RefitEntry& entry) {
    Pattern pattern;
    pattern.members.push_back(golden_group(refit, geometry, entry));
    add_broadcasts(geometry, pattern);
    add_unpacks(geometry, entry, pattern);
    return pattern;
  });
}

}  // namespace isthmus
