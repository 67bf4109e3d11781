#include "planner/policies/stage_streams.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "planner/policies/pattern_cache.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

constexpr Bytes largest_message{0xFFFFFFFF};

std::uint32_t groups_in(const Pattern& pattern) {
  std::uint32_t last = 0;
  for (const Step& step : pattern.steps) last = std::max(last, step.group);
  return last + 1;
}

}  // namespace

Plan plan_on_stage_streams(std::string policy, const Refit& refit,
                           const std::function<Pattern(const Geometry&, const RefitEntry&)>& build) {
  Plan plan;
  plan.policy = std::move(policy);
  const int streams = std::max(1, std::min(refit.settings.streams, refit.stages));
  for (int stream = 0; stream < streams; ++stream)
    plan.lanes.push_back({fmt::format("stream {}", stream), 1, false});
  PatternCache cache(plan);
  std::vector<std::uint32_t> group_counts;  // by pattern
  std::uint32_t group = 0;
  for (std::uint32_t t = 0; t < refit.tensors.size(); ++t) {
    const RefitEntry& entry = refit.tensors[t];
    const Geometry& geometry = refit.geometries[entry.geometry];
    PatternCache::Key key{entry.geometry};
    if (sides_overlap(geometry, entry.source_base, entry.target_base))
      key.push_back(std::int64_t{entry.source_base.value} - entry.target_base.value);
    const PatternId pattern = cache.get(key, [&] { return build(geometry, entry); });
    if (pattern.index() == group_counts.size())
      group_counts.push_back(groups_in(plan.patterns[pattern.index()]));
    const LaneId lane{static_cast<std::uint32_t>(entry.stage % streams)};
    plan.instances.push_back({pattern, TensorId{t}, entry.source_base, entry.target_base, lane, group});
    group += group_counts[pattern.index()];
  }
  return plan;
}

std::uint32_t SafeGroups::place(std::uint32_t a, std::uint32_t b) {
  const auto filled = [this](std::uint32_t rank) -> Filled& {
    return last_.try_emplace(rank, Filled{first_, 0}).first->second;
  };
  Filled& of_a = filled(a);
  Filled& of_b = filled(b);
  std::uint32_t group = std::max(of_a.group, of_b.group);
  const auto full = [&group](const Filled& of_rank) {
    return of_rank.group == group && of_rank.operations >= safe_group_size;
  };
  if (full(of_a) || full(of_b)) ++group;
  const auto add = [&group](Filled& of_rank) {
    if (of_rank.group != group) of_rank = {group, 0};
    ++of_rank.operations;
  };
  add(of_a);
  if (a != b) add(of_b);
  end_ = std::max(end_, group + 1);
  return group;
}

std::vector<Region> message_pieces(const Layout& layout, const Region& box) {
  std::vector<Region> pieces{box};
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    std::vector<Region> finer;
    for (const Region& piece : pieces) {
      const std::int64_t extent = piece.end[d] - piece.begin[d];
      const std::int64_t row = layout.bytes(piece).value / extent;
      const std::int64_t most_rows = std::max<std::int64_t>(1, largest_message.value / row);
      const std::int64_t count = (extent - 1) / most_rows + 1;
      const std::int64_t length = (extent - 1) / count + 1;
      for (std::int64_t begin = piece.begin[d]; begin < piece.end[d]; begin += length) {
        finer.push_back(piece);
        finer.back().begin[d] = begin;
        finer.back().end[d] = std::min(piece.end[d], begin + length);
      }
    }
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace isthmus
