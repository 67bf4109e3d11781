// The naive plan: every overlap of a source shard with a target shard goes once to each target replica, from
// the first holder in mesh order (NeMo RL's exact transport without its final broadcast). One group per
// tensor, tensors of one pipeline stage one after the other, at most `refit.streams` stages in flight.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "planner/policies/pattern_cache.hpp"
#include "planner/policy.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

Pattern p2p_pattern(const Geometry& geometry, Rank source_base, Rank target_base) {
  const Cells cells = cells_of(geometry);
  Pattern pattern;
  std::map<LocalRank, std::uint32_t> operations;  // of each rank so far
  for (const Cell& cell : cells.list) {
    const Shard& source = cells.sources[cell.source];
    for (const std::uint32_t receiver : cells.targets[cell.target].holders) {
      Step step;
      step.region = cell.region;
      step.source = LocalRank::source(source.holders.front());
      step.target = LocalRank::target(receiver);
      for (const std::uint32_t holder : source.holders) {
        if (source_base.value + holder != target_base.value + receiver) continue;
        step.kind = StepKind::copy;  // the receiver holds the bytes already
        step.source = LocalRank::source(holder);
      }
      step.group = std::max(operations[step.source]++, operations[step.target]++) / safe_group_size;
      pattern.steps.push_back(step);
    }
  }
  return pattern;
}

std::uint32_t group_count(const Pattern& pattern) {
  std::uint32_t last = 0;
  for (const Step& step : pattern.steps) last = std::max(last, step.group);
  return last + 1;
}

}  // namespace

PlanResult plan_p2p(const Refit& refit) {
  Plan plan;
  plan.policy = "p2p";
  const int streams = std::max(1, std::min(refit.settings.streams, refit.stages));
  for (int stream = 0; stream < streams; ++stream)
    plan.lanes.push_back({fmt::format("stream {}", stream), 1, false});
  PatternCache cache(plan);
  std::uint32_t group = 0;
  for (std::uint32_t t = 0; t < refit.tensors.size(); ++t) {
    const RefitEntry& entry = refit.tensors[t];
    const Geometry& geometry = refit.geometries[entry.geometry];
    PatternCache::Key key{entry.geometry};
    if (sides_overlap(geometry, entry.source_base, entry.target_base)) {
      key.push_back(std::int64_t{entry.source_base.value} - entry.target_base.value);
    }
    const PatternId pattern =
        cache.get(key, [&] { return p2p_pattern(geometry, entry.source_base, entry.target_base); });
    const LaneId lane{static_cast<std::uint32_t>(entry.stage % streams)};
    plan.instances.push_back({pattern, TensorId{t}, entry.source_base, entry.target_base, lane, group});
    group += group_count(plan.patterns[pattern.index()]);
  }
  return plan;
}

}  // namespace isthmus
