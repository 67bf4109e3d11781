#include <algorithm>
#include <utility>

#include "tests/support/mutant_tools.hpp"

namespace isthmus::test {
namespace {

bool drop_dependency(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, waits);
  if (step == nullptr) return false;
  std::vector<std::uint32_t>& after = pattern_of(plan, step).after;
  std::swap(after[step->after_begin],
            after[step->after_begin + random.below(step->after_end - step->after_begin)]);
  ++step->after_begin;
  return true;
}

bool forward_dependency(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, waits);
  if (step == nullptr) return false;
  Pattern& pattern = pattern_of(plan, step);
  const auto index = to_size(step - pattern.steps.data());
  pattern.after[step->after_begin] = static_cast<std::uint32_t>(
      index + random.below(pattern.steps.size() - index));  // itself or a later one
  return true;
}

bool other_dependency(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, waits);
  if (step == nullptr) return false;
  Pattern& pattern = pattern_of(plan, step);
  std::uint32_t& after = pattern.after[step->after_begin + random.below(step->after_end - step->after_begin)];
  const auto earlier = static_cast<std::uint32_t>(random.below(to_size(step - pattern.steps.data())));
  return std::exchange(after, earlier) != earlier;
}

/// The groups of a step and of one that it waits for, exchanged in one instance.
bool swap_groups(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, waits);
  if (step == nullptr) return false;
  const Pattern& pattern = pattern_of(plan, step);
  unroll_schedule(plan);
  for (const Instance& instance : plan.instances) {
    if (&plan.pattern(instance) != &pattern) continue;
    std::uint32_t& later = plan.schedule[instance.schedule + to_size(step - pattern.steps.data())];
    std::uint32_t& earlier = plan.schedule[instance.schedule + pattern.after[step->after_begin]];
    const bool different = later != earlier;
    std::swap(later, earlier);
    return different;
  }
  return false;
}

/// Two random steps of all instances exchange their groups: often harmless, sometimes a wait cycle.
bool shuffle_groups(Plan& plan, const Refit&, Random& random) {
  unroll_schedule(plan);
  if (plan.schedule.empty()) return false;
  std::uint32_t& a = plan.schedule[random.below(plan.schedule.size())];
  std::uint32_t& b = plan.schedule[random.below(plan.schedule.size())];
  const bool different = a != b;
  std::swap(a, b);
  return different;
}

/// All steps of the plan in one group.
bool oversized_group(Plan& plan, const Refit&, Random&) {
  unroll_schedule(plan);
  const bool changes = std::any_of(plan.schedule.begin(), plan.schedule.end(),
                                   [&](std::uint32_t group) { return group != plan.schedule.front(); });
  if (changes) std::fill(plan.schedule.begin(), plan.schedule.end(), 0U);
  return changes;
}

bool other_lane(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random);
  if (step == nullptr) return false;
  const auto lane = static_cast<std::uint16_t>(random.below(plan.lanes.size() + 1));  // one past the last
  return std::exchange(step->lane, lane) != lane;
}

bool narrow_window(Plan& plan, const Refit&, Random& random) {
  const auto window = static_cast<std::uint32_t>(random.below(3));  // 0 does not exist
  bool changes = false;
  for (Lane& lane : plan.lanes) changes |= std::exchange(lane.window, window) != window;
  return changes;
}

bool coalesce_all(Plan& plan, const Refit&, Random&) {
  bool changes = false;
  for (Lane& lane : plan.lanes) changes |= !std::exchange(lane.coalesce, true);
  return changes;
}

/// The groups of one lane in reverse: the lane's ranks still agree, its dependencies may not.
bool reverse_lane(Plan& plan, const Refit&, Random& random) {
  unroll_schedule(plan);
  const std::size_t lane = random.below(plan.lanes.size());
  bool changes = false;
  for (const Instance& instance : plan.instances) {
    const std::vector<Step>& steps = plan.pattern(instance).steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (instance.lane.value + steps[i].lane != lane) continue;
      std::uint32_t& group = plan.schedule[instance.schedule + i];
      group = 100'000 - group;
      changes = true;
    }
  }
  return changes;
}

}  // namespace

std::vector<MutationOperator> order_mutations() {
  return {
      {"drop_dependency", drop_dependency},
      {"forward_dependency", forward_dependency},
      {"other_dependency", other_dependency},
      {"swap_groups", swap_groups},
      {"shuffle_groups", shuffle_groups},
      {"oversized_group", oversized_group},
      {"other_lane", other_lane},
      {"narrow_window", narrow_window},
      {"coalesce_all", coalesce_all},
      {"reverse_lane", reverse_lane},
  };
}

}  // namespace isthmus::test
