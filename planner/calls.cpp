#include "planner/calls.hpp"

#include <algorithm>

#include "planner/shards.hpp"

namespace isthmus {
namespace {

bool is_message(StepKind kind) {
  return kind == StepKind::send || kind == StepKind::put || kind == StepKind::broadcast;
}

}  // namespace

PatternCall::PatternCall(const Pattern& pattern, const Geometry& geometry) {
  const bool packet = std::any_of(pattern.steps.begin(), pattern.steps.end(),
                                  [](const Step& step) { return step.kind == StepKind::load; });
  if (packet) return;
  for (const Step& step : pattern.steps)
    if (is_message(step.kind)) group_ = std::min(group_, step.group);
  for (const Step& step : pattern.steps)
    if (includes(step)) ++messages_[caller(pattern, step).value];
  if (geometry.source.shape.empty()) return;
  all_rows_ = geometry.source.shape.front();
  for (const Shard& shard : distinct_shards(geometry.source))
    for (const std::uint32_t holder : shard.holders)
      rows_[LocalRank::source(holder).value] = shard.region.end[0] - shard.region.begin[0];
}

bool PatternCall::includes(const Step& step) const {
  return group_ != no_group && step.group == group_ && is_message(step.kind);
}

LocalRank PatternCall::caller(const Pattern& pattern, const Step& step) {
  return is_collective(step.kind) ? pattern.members[step.members].back() : step.target;
}

std::uint32_t PatternCall::exports(const Step& step, std::int64_t parts) const {
  const auto held = rows_.find(step.source.value);
  if (held == rows_.end()) return 0;
  return static_cast<std::uint32_t>((parts * held->second + all_rows_ - 1) / all_rows_);
}

}  // namespace isthmus
