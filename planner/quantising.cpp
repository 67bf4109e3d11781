#include "planner/quantising.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/precision.hpp"

namespace isthmus {
namespace {

constexpr std::size_t groups_ahead = 2;  // of a rank's groups, from quantising a region to sending it

/// The region that has to be quantised for one that is read.
Region quantised_around(const Region& region, QuantisedPart part) {
  Region box = region;
  if (part != QuantisedPart::values) return box;
  std::int64_t &begin = box.begin[box.dimensions - 1], &end = box.end[box.dimensions - 1];
  begin = begin / mxfp8_group * mxfp8_group;
  end = (end + mxfp8_group - 1) / mxfp8_group * mxfp8_group;
  return box;
}

class Quantiser {
 public:
  Quantiser(const Refit& refit, Plan& plan) : refit_(refit), plan_(plan) {}

  /// The reason why it cannot be; empty when it is done.
  std::string run() {
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      if (std::string fault = group_fault(t); !fault.empty()) return fault;
    }
    list_groups();
    for (std::uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const QuantisedPart part = refit_.tensors[plan_.instances[i].tensor.index()].tensor.quantised;
      if (part == QuantisedPart::none) continue;
      if (std::string fault = change(plan_.instances[i], part); !fault.empty()) return fault;
    }
    drop_unused();
    return "";
  }

 private:
  /// A pattern with its quantising steps in front, and which reader each of these serves.
  struct QuantisedPattern {
    std::uint32_t pattern = 0;
    std::vector<std::uint32_t> readers;  // by quantising step: a step of the pattern before
    std::string fault;
  };
  using RankOnLane = std::pair<std::uint32_t, std::uint32_t>;

  std::string group_fault(std::uint32_t number) const;
  void list_groups();
  std::string change(Instance& instance, QuantisedPart part);
  QuantisedPattern make(const Instance& instance, QuantisedPart part);
  void keep_groups(Instance& instance, std::uint32_t before, const QuantisedPattern& made);
  std::uint32_t earlier(const Instance& instance, const Step& reader, std::uint32_t group) const;
  void drop_unused();

  const Refit& refit_;
  Plan& plan_;
  std::map<std::pair<std::uint32_t, QuantisedPart>, QuantisedPattern> made_;
  std::map<RankOnLane, std::vector<std::uint32_t>> groups_;  // ascending, of what reads source shards' ranks
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      schedules_;  // by schedule, pattern and bases before: the new one
};

/// Whole groups along the last dimension, in every source shard.
std::string Quantiser::group_fault(std::uint32_t number) const {
  const RefitEntry& entry = refit_.tensors[number];
  if (entry.tensor.quantised != QuantisedPart::values) return "";
  const Layout& layout = refit_.geometries[entry.geometry].source;
  for (std::size_t position = 0; position < layout.mesh.size(); ++position) {
    const Region shard = layout.region(position);
    if (shard.empty() || quantised_around(shard, entry.tensor.quantised) == shard) continue;
    return fmt::format("the source shard {} of {} on rank {} cuts a group of {}", to_string(shard),
                       entry.tensor.name, entry.source_base.value + layout.mesh.ranks[position].value,
                       mxfp8_group);
  }
  return "";
}

void Quantiser::list_groups() {
  std::set<std::uint32_t> sources;
  for (const RefitEntry& entry : refit_.tensors) {
    for (const Rank rank : refit_.geometries[entry.geometry].source.mesh.ranks)
      sources.insert(entry.source_base.value + rank.value);
  }
  for (const Instance& instance : plan_.instances) {
    const Pattern& pattern = plan_.pattern(instance);
    for (std::size_t s = 0; s < pattern.steps.size(); ++s) {
      const Step& step = pattern.steps[s];
      if (is_collective(step.kind)) continue;  // other instances' alone: of these they are refused
      const std::uint32_t lane = instance.lane.value + step.lane, group = plan_.group_of(instance, s);
      for (const LocalRank end : {step.source, step.target}) {
        const std::uint32_t rank = global_rank(instance, end).value;
        if (sources.contains(rank)) groups_[{rank, lane}].push_back(group);
      }
    }
  }
  for (auto& [place, groups] : groups_) {
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  }
}

std::string Quantiser::change(Instance& instance, QuantisedPart part) {
  if (instance.buffer != Instance::own_memory) return "it stages in buffers that tensors share";
  const std::uint32_t before = instance.pattern.value;
  const auto [known, added] = made_.try_emplace({before, part});
  if (added) known->second = make(instance, part);
  const QuantisedPattern& made = known->second;
  if (!made.fault.empty() || made.readers.empty()) return made.fault;
  keep_groups(instance, before, made);
  instance.pattern = {made.pattern};
  return "";
}

Quantiser::QuantisedPattern Quantiser::make(const Instance& instance, QuantisedPart part) {
  const Pattern& before = plan_.pattern(instance);
  QuantisedPattern made;
  Pattern pattern;
  for (std::uint32_t s = 0; s < before.steps.size(); ++s) {
    const Step& reader = before.steps[s];
    if (reader.from != Buffer::source) continue;
    if (is_collective(reader.kind)) return {0, {}, "a collective reads source shards"};
    Step step;
    step.kind = StepKind::quantize;
    step.to = Buffer::staging;
    step.lane = reader.lane;
    step.source = step.target = reader.source;
    step.region = quantised_around(reader.region, part);
    pattern.steps.push_back(step);
    made.readers.push_back(s);
  }
  const auto shift = static_cast<std::uint32_t>(pattern.steps.size());
  if (shift == 0) return made;
  pattern.members = before.members;
  std::uint32_t serving = 0;
  for (std::uint32_t s = 0; s < before.steps.size(); ++s) {
    Step step = before.steps[s];
    const auto begin = static_cast<std::uint32_t>(pattern.after.size());
    if (step.from == Buffer::source) {
      step.from = Buffer::staging;
      pattern.after.push_back(serving++);
    }
    for (std::uint32_t a = step.after_begin; a < step.after_end; ++a)
      pattern.after.push_back(before.after[a] + shift);
    step.after_begin = begin;
    step.after_end = static_cast<std::uint32_t>(pattern.after.size());
    pattern.steps.push_back(step);
  }
  made.pattern = static_cast<std::uint32_t>(plan_.patterns.size());
  plan_.patterns.push_back(std::move(pattern));
  return made;
}

/// Steps keep their groups; instances that shared a schedule share the new one.
void Quantiser::keep_groups(Instance& instance, std::uint32_t before, const QuantisedPattern& made) {
  const auto next = static_cast<std::uint32_t>(plan_.schedule.size());
  if (instance.schedule != Instance::no_schedule) {
    const auto [known, added] = schedules_.try_emplace(
        {instance.schedule, before, instance.source_base.value, instance.target_base.value}, next);
    if (!added) {
      instance.schedule = known->second;
      return;
    }
  }
  const std::vector<Step>& steps = plan_.patterns[before].steps;
  std::vector<std::uint32_t> schedule;
  for (const std::uint32_t reader : made.readers)
    schedule.push_back(earlier(instance, steps[reader], plan_.group_of(instance, reader)));
  for (std::size_t s = 0; s < steps.size(); ++s) schedule.push_back(plan_.group_of(instance, s));
  plan_.schedule.insert(plan_.schedule.end(), schedule.begin(), schedule.end());
  instance.schedule = next;
  instance.group = 0;
}

/// The group of the reader's rank that lies `groups_ahead` of its groups before, or its first one.
std::uint32_t Quantiser::earlier(const Instance& instance, const Step& reader, std::uint32_t group) const {
  const std::uint32_t lane = instance.lane.value + reader.lane;
  const std::vector<std::uint32_t>& groups = groups_.at({global_rank(instance, reader.source).value, lane});
  const auto at =
      static_cast<std::size_t>(std::lower_bound(groups.begin(), groups.end(), group) - groups.begin());
  return groups[at - std::min(at, groups_ahead)];
}

/// Patterns and schedules that no instance has any more.
void Quantiser::drop_unused() {
  std::map<std::uint32_t, std::uint32_t> patterns;
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> schedules;  // by begin and length
  std::vector<Pattern> kept;
  std::vector<std::uint32_t> schedule;
  for (Instance& instance : plan_.instances) {
    const auto [pattern, first] =
        patterns.try_emplace(instance.pattern.value, static_cast<std::uint32_t>(kept.size()));
    if (first) kept.push_back(std::move(plan_.patterns[instance.pattern.index()]));
    instance.pattern = {pattern->second};
    const std::size_t steps = kept[pattern->second].steps.size();
    if (instance.schedule == Instance::no_schedule) continue;
    const auto [range, added] =
        schedules.try_emplace({instance.schedule, steps}, static_cast<std::uint32_t>(schedule.size()));
    const auto begin = plan_.schedule.begin() + instance.schedule;
    if (added) schedule.insert(schedule.end(), begin, begin + static_cast<std::ptrdiff_t>(steps));
    instance.schedule = range->second;
  }
  plan_.patterns = std::move(kept);
  plan_.schedule = std::move(schedule);
}

}  // namespace

PlanResult with_quantising(const Refit& refit, Plan plan) {
  if (std::string fault = Quantiser(refit, plan).run(); !fault.empty()) return Refused{std::move(fault)};
  return plan;
}

PlanResult plan_balanced_quantized(const Refit& refit) {
  if (!refit.sources_quantise())
    return Refused{
        "nothing is quantised at its source (generate.quantize: mxfp8 with refit.quantize_at: source)"};
  PlanResult result = plan_balanced(refit);
  Plan* const plan = std::get_if<Plan>(&result);
  if (plan == nullptr) return result;
  plan->policy = balanced_quantized;
  return with_quantising(refit, std::move(*plan));
}

}  // namespace isthmus
