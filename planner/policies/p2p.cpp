// The naive plan: every overlap of a source shard with a target shard goes once to each target replica, from
// the first holder in mesh order (NeMo RL's exact transport without its final broadcast). One group per
// tensor where that is safe, on the streams of stage_streams.hpp.

#include "planner/large_arrays.hpp"
#include "planner/policies/stage_streams.hpp"
#include "planner/policy.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

Pattern p2p_pattern(const Geometry& geometry, const RefitEntry& entry) {
  const Cells cells = cells_of(geometry);
  Pattern pattern;
  SafeGroups groups(0);
  std::size_t overlaps = 0;
  for (const Cell cell : cells.list) overlaps += cells.targets[cell.target].holders.size();
  reserve_large(pattern.steps, overlaps);
  std::vector<Region> pieces;
  for (const Cell cell : cells.list) {
    const Shard& source = cells.sources[cell.source];
    find_message_pieces(geometry.source, cells.region(cell), pieces);
    for (const std::uint32_t receiver : cells.targets[cell.target].holders) {
      Step step;
      step.source = LocalRank::source(source.holders.front());
      step.target = LocalRank::target(receiver);
      std::uint32_t from = entry.source_base.value + source.holders.front();
      const std::uint32_t to = entry.target_base.value + receiver;
      for (const std::uint32_t holder : source.holders) {
        if (entry.source_base.value + holder != to) continue;
        step.kind = StepKind::copy;  // the receiver holds the bytes already
        step.source = LocalRank::source(holder);
        from = to;
      }
      for (const Region& piece : pieces) {
        step.region = piece;
        step.group = groups.place(from, to);
        pattern.steps.push_back(step);
      }
    }
  }
  return pattern;
}

}  // namespace

PlanResult plan_p2p(const Refit& refit) { return plan_on_stage_streams("p2p", refit, p2p_pattern); }

}  // namespace isthmus
