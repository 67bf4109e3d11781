#include "planner/policies/stage_streams.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "planner/policies/gather_broadcast.hpp"
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

class StageStreams {
 public:
  StageStreams(std::string policy, const Refit& refit, const BuildPattern& build)
      : refit_(refit), build_(build), cache_(plan_) {
    plan_.policy = std::move(policy);
    streams_ = std::max(1, std::min(refit.settings.streams, refit.stages));
    for (int stream = 0; stream < streams_; ++stream)
      plan_.lanes.push_back({fmt::format("stream {}", stream), 1, false});
  }

  Plan all() {
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) add(TensorId{t}, 0);
    return std::move(plan_);
  }

  Plan hybrid() {
    std::vector<TensorId> bulk, misc;
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t)
      (refit_.tensors[t].tensor.role == Role::bulk ? bulk : misc).push_back(TensorId{t});
    if (misc.empty()) return all();
    const auto buffers = static_cast<std::uint32_t>(refit_.settings.buffers);
    for (std::uint32_t buffer = 0; buffer < buffers; ++buffer)
      plan_.lanes.push_back({fmt::format("buffer {}", buffer), 1, true});
    const auto lanes = static_cast<std::uint16_t>(plan_.lanes.size());
    for (const TensorId tensor : bulk) add(tensor, tensor == bulk.back() ? lanes : std::uint16_t{0});
    PacketWriter packets(refit_, plan_, group_, LaneId{static_cast<std::uint32_t>(streams_)});
    for (const TensorId tensor : misc) packets.add(tensor);
    return std::move(plan_);
  }

 private:
  /// `waits`: lanes on which the ranks wait for their devices afterwards, if any.
  void add(TensorId tensor, std::uint16_t waits) {
    const RefitEntry& entry = refit_.tensors[tensor.index()];
    const Geometry& geometry = refit_.geometries[entry.geometry];
    const auto stream = static_cast<std::uint32_t>(entry.stage % streams_);
    PatternCache::Key key{entry.geometry, waits};
    if (sides_overlap(geometry, entry.source_base, entry.target_base))
      key.push_back(std::int64_t{entry.source_base.value} - entry.target_base.value);
    const PatternId pattern = cache_.get(key, [&] {
      Pattern made = build_(geometry, entry);
      if (waits == 0) return made;
      for (Step& step : made.steps) step.lane = static_cast<std::uint16_t>(stream);
      wait_on_lanes(geometry, waits, made);
      return made;
    });
    if (pattern.index() == group_counts_.size())
      group_counts_.push_back(groups_in(plan_.patterns[pattern.index()]));
    const LaneId lane{waits == 0 ? stream : 0};
    plan_.instances.push_back({pattern, tensor, entry.source_base, entry.target_base, lane, group_});
    group_ += group_counts_[pattern.index()];
  }

  const Refit& refit_;
  const BuildPattern& build_;
  Plan plan_;
  PatternCache cache_;
  int streams_ = 1;
  std::vector<std::uint32_t> group_counts_;  // by pattern
  std::uint32_t group_ = 0;
};

/// Of each rank the steps that it takes part in.
std::map<LocalRank, std::vector<std::uint32_t>> steps_by_rank(const Pattern& pattern) {
  std::map<LocalRank, std::vector<std::uint32_t>> steps;
  for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
    const Step& step = pattern.steps[s];
    if (is_collective(step.kind)) {
      for (const LocalRank member : pattern.members[step.members]) steps[member].push_back(s);
      continue;
    }
    steps[step.source].push_back(s);
    if (step.target != step.source) steps[step.target].push_back(s);
  }
  return steps;
}

/// The first element of a rank's own shard, from lane to lane.
void wait_of_rank(const Region& shard, LocalRank rank, std::uint32_t group, std::uint16_t lanes,
                  std::vector<std::uint32_t> before, Pattern& pattern) {
  Step step;
  step.kind = StepKind::pack;
  const bool target = (rank.value & LocalRank::target_side) != 0;
  step.from = target ? Buffer::target : Buffer::source;
  step.to = Buffer::staging;
  step.source = step.target = rank;
  step.parts = 0;
  step.region = shard;
  for (std::size_t d = 0; d < shard.dimensions; ++d) step.region.end[d] = shard.begin[d] + 1;
  for (std::uint16_t lane = 0; lane < lanes; ++lane) {
    step.lane = lane;
    step.group = group + lane;
    step.after_begin = static_cast<std::uint32_t>(pattern.after.size());
    pattern.after.insert(pattern.after.end(), before.begin(), before.end());
    step.after_end = static_cast<std::uint32_t>(pattern.after.size());
    before.push_back(static_cast<std::uint32_t>(pattern.steps.size()));
    pattern.steps.push_back(step);
  }
}

}  // namespace

Plan plan_on_stage_streams(std::string policy, const Refit& refit, const BuildPattern& build) {
  return StageStreams(std::move(policy), refit, build).all();
}

Plan plan_hybrid(std::string policy, const Refit& refit, const BuildPattern& build) {
  StageStreams streams(std::move(policy), refit, build);
  return refit.train_ranks == 0 ? streams.all() : streams.hybrid();
}

void wait_on_lanes(const Geometry& geometry, std::uint16_t lanes, Pattern& pattern) {
  const std::uint32_t group = groups_in(pattern);
  const std::map<LocalRank, std::vector<std::uint32_t>> steps = steps_by_rank(pattern);
  for (const bool target : {false, true}) {
    for (const Shard& shard : distinct_shards(target ? geometry.target : geometry.source)) {
      for (const std::uint32_t holder : shard.holders) {
        const LocalRank rank = target ? LocalRank::target(holder) : LocalRank::source(holder);
        const auto own = steps.find(rank);
        const std::vector<std::uint32_t> before =
            own == steps.end() ? std::vector<std::uint32_t>{} : own->second;
        wait_of_rank(shard.region, rank, group, lanes, before, pattern);
      }
    }
  }
}

std::uint32_t SafeGroups::place(std::uint32_t a, std::uint32_t b) {
  if (std::max(a, b) >= last_.size()) last_.resize(std::max(a, b) + std::size_t{1}, Filled{first_, 0});
  Filled& of_a = last_[a];
  Filled& of_b = last_[b];
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
  std::vector<Region> pieces;
  find_message_pieces(layout, box, pieces);
  return pieces;
}

void find_message_pieces(const Layout& layout, const Region& box, std::vector<Region>& pieces) {
  pieces.assign(1, box);
  if (layout.bytes(box) <= largest_message) return;
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
}

}  // namespace isthmus
