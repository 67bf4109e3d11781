#include "tests/support/staging_placer.hpp"

#include <algorithm>

namespace isthmus::test {
namespace {

using Ranks = std::set<std::uint32_t>;

std::uint32_t rank_of(const Instance& instance, LocalRank rank) {
  const std::uint32_t offset = rank.value % LocalRank::target_side;
  return (rank.value >= LocalRank::target_side ? instance.target_base.value : instance.source_base.value) +
         offset;
}

Ranks members_of(const Plan& plan, const Instance& instance, const Step& step) {
  Ranks ranks;
  for (const LocalRank rank : plan.patterns[instance.pattern.index()].members[step.members])
    ranks.insert(rank_of(instance, rank));
  return ranks;
}

Ranks ranks_of(const Plan& plan, const Instance& instance, const Step& step) {
  if (step.kind == StepKind::broadcast || step.kind == StepKind::all_gather)
    return members_of(plan, instance, step);
  return {rank_of(instance, step.source), rank_of(instance, step.target)};
}

/// The ranks on which a step touches staging.
Ranks staging_ranks(const Plan& plan, const Instance& instance, const Step& step) {
  const bool reads = step.from == Buffer::staging, writes = step.to == Buffer::staging;
  switch (step.kind) {
    case StepKind::all_gather: return reads || writes ? members_of(plan, instance, step) : Ranks{};
    case StepKind::broadcast:
      if (writes) return members_of(plan, instance, step);
      return reads ? Ranks{rank_of(instance, step.source)} : Ranks{};
    default: break;
  }
  Ranks ranks;
  if (reads) ranks.insert(rank_of(instance, step.source));
  if (writes) ranks.insert(rank_of(instance, step.target));
  return ranks;
}

class Placer {
 public:
  Placer(Plan& plan, const Refit& refit, const BuildOptions& options) : plan_(plan), options_(options) {
    for (const Instance& instance : plan.instances) {
      stays_.push_back(stays_of(plan, refit, instance));
      for (const auto& entry : stays_.back()) slot_ = std::max(slot_, (entry.second.bytes + 7) / 8 * 8);
      const std::vector<Step>& steps = plan.pattern(instance).steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        for (const std::uint32_t rank : ranks_of(plan, instance, steps[i]))
          groups_[{rank, instance.lane.value + steps[i].lane}].insert(plan.group_of(instance, i));
      }
    }
  }

  void place() {
    if (slot_ == 0) return;
    const std::size_t buffers = options_.seed % 4 == 0 ? 2 : 1;
    for (std::size_t b = 0; b < buffers; ++b) plan_.buffers.push_back({b == 0 ? "near" : "far", {0}});
    // Places that overlap by half are in order as well, as long as nobody is there.
    const std::int64_t stride = options_.seed % 3 == 1 ? std::max<std::int64_t>(slot_ / 16 * 8, 8) : slot_;
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      for (std::size_t n = 0; n < options_.slots; ++n) {
        const std::size_t slot = (i + n) % options_.slots;
        const auto buffer = static_cast<std::uint32_t>(slot % buffers);
        const std::int64_t offset = static_cast<std::int64_t>(slot / buffers) * stride +
                                    static_cast<std::int64_t>(options_.seed % 2) * 8;
        if (stays_[i].empty() || !is_free(i, buffer, offset)) continue;
        settle(i, buffer, offset);
        break;
      }
    }
  }

 private:
  void settle(std::size_t index, std::uint32_t buffer, std::int64_t offset) {
    Instance& instance = plan_.instances[index];
    instance.buffer = buffer;
    instance.offset = {offset};
    for (const auto& entry : stays_[index]) {
      Bytes& size = plan_.buffers[buffer].size;
      size = std::max(size, Bytes{offset + entry.second.bytes});
    }
  }

  bool is_free(std::size_t later, std::uint32_t buffer, std::int64_t offset) const {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const Instance& other = plan_.instances[earlier];
      if (other.buffer != buffer) continue;
      for (const auto& entry : stays_[later]) {
        const auto there = stays_[earlier].find(entry.first);
        if (there == stays_[earlier].end()) continue;
        const bool apart = offset >= other.offset.value + there->second.bytes ||
                           other.offset.value >= offset + entry.second.bytes;
        if (!apart && !is_over(entry.first, there->second, entry.second)) return false;
      }
    }
    return true;
  }

  /// Whether on this rank one lane ends the first stay before it begins the second.
  bool is_over(std::uint32_t rank, const Stay& first, const Stay& second) const {
    if (first.lanes.size() != 1 || first.lanes != second.lanes) return false;
    const std::uint32_t lane = *first.lanes.begin();
    const std::set<std::uint32_t>& groups = groups_.at({rank, lane});
    std::size_t between = 0;
    for (const std::uint32_t group : groups) between += first.last < group && group <= second.first;
    return first.last < second.first && between >= plan_.lanes[lane].window;
  }

  Plan& plan_;
  const BuildOptions& options_;
  std::vector<Stays> stays_;  // by instance
  std::int64_t slot_ = 0;     // bytes that hold the staging of any instance
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::uint32_t>> groups_;  // by rank and lane
};

}  // namespace

Stays stays_of(const Plan& plan, const Refit& refit, const Instance& instance) {
  Stays stays;
  const std::vector<Step>& steps = plan.pattern(instance).steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const std::uint32_t group = plan.group_of(instance, i);
    for (const std::uint32_t rank : staging_ranks(plan, instance, step)) {
      const auto added = stays.try_emplace(rank);
      Stay& stay = added.first->second;
      if (added.second) stay.first = group;
      stay.lanes.insert(instance.lane.value + step.lane);
      stay.first = std::min(stay.first, group);
      stay.last = std::max(stay.last, group);
      stay.low.resize(step.region.dimensions, step.region.begin[0]);
      stay.high.resize(step.region.dimensions, 0);
      for (std::size_t d = 0; d < step.region.dimensions; ++d) {
        stay.low[d] = added.second ? step.region.begin[d] : std::min(stay.low[d], step.region.begin[d]);
        stay.high[d] = std::max(stay.high[d], step.region.end[d]);
      }
    }
  }
  for (auto& entry : stays) {
    Stay& stay = entry.second;
    stay.bytes = element_size(refit.geometry(instance.tensor).source.dtype).value;
    for (std::size_t d = 0; d < stay.low.size(); ++d) stay.bytes *= stay.high[d] - stay.low[d];
  }
  return stays;
}

void share_staging(Plan& plan, const Refit& refit, const BuildOptions& options) {
  Placer(plan, refit, options).place();
}

}  // namespace isthmus::test
