#include "planner/check_order.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace isthmus {
namespace {

constexpr std::uint32_t kinds = static_cast<std::uint32_t>(last_step_kind) + 1;

/// Steps of one lane and kind.
std::uint32_t class_of(std::uint32_t lane, const Step& step) {
  return lane * kinds + static_cast<std::uint32_t>(step.kind);
}

/// Collects the dependencies within one group number; fails on one that leads to a lower group.
class Potential {
 public:
  explicit Potential(const Plan& plan) : plan_(plan), of_pattern_(plan.patterns.size()) {}

  bool proves_order() {
    for (const EqualInstances& equal : equal_instances(plan_)) {
      const Instance& instance = plan_.instances[equal.first];
      const bool upwards =
          instance.schedule == Instance::no_schedule ? add_pattern(instance) : add_steps(instance);
      if (!upwards) return false;
    }
    return classes_in_order();
  }

 private:
  struct PatternWaits {
    bool known = false, upwards = true;
    std::vector<std::uint64_t> pairs;  // of classes with a dependency inside one group
  };

  void add_pair(std::vector<std::uint64_t>& pairs, std::uint32_t before, std::uint32_t later) const {
    const std::uint64_t pair = group_key(before, later);
    if (pairs.empty() || pairs.back() != pair) pairs.push_back(pair);
  }

  static void make_distinct(std::vector<std::uint64_t>& pairs) {
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  }

  PatternWaits waits_of(const Pattern& pattern) const {
    PatternWaits waits{true, true, {}};
    for (const Step& step : pattern.steps) {
      for (const std::uint32_t earlier : dependencies(pattern, step)) {
        const Step& before = pattern.steps[earlier];
        waits.upwards &= before.group <= step.group;
        if (before.group == step.group)
          add_pair(waits.pairs, class_of(before.lane, before), class_of(step.lane, step));
      }
    }
    make_distinct(waits.pairs);
    return waits;
  }

  bool add_pattern(const Instance& instance) {
    PatternWaits& waits = of_pattern_[instance.pattern.index()];
    if (!waits.known) waits = waits_of(plan_.pattern(instance));
    const std::uint32_t shift = instance.lane.value * kinds;
    for (const std::uint64_t pair : waits.pairs) {
      const auto before = static_cast<std::uint32_t>(pair >> 32U), later = static_cast<std::uint32_t>(pair);
      add_pair(pairs_, shift + before, shift + later);
    }
    return waits.upwards;
  }

  bool add_steps(const Instance& instance) {
    const Pattern& pattern = plan_.pattern(instance);
    const auto groups = std::span(plan_.schedule).subspan(instance.schedule, pattern.steps.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const std::uint32_t earlier : dependencies(pattern, pattern.steps[i])) {
        if (groups[earlier] > groups[i]) return false;
        if (groups[earlier] < groups[i]) continue;
        const Step& before = pattern.steps[earlier];
        const Step& later = pattern.steps[i];
        add_pair(pairs_, class_of(lane_of(instance, before), before),
                 class_of(lane_of(instance, later), later));
      }
    }
    return true;
  }

  /// Repeatedly takes away classes that no other class leads to; what is left has a cycle.
  bool classes_in_order() {
    make_distinct(pairs_);
    std::vector<std::uint32_t> leading(plan_.lanes.size() * kinds, 0);
    for (const std::uint64_t pair : pairs_) {
      const std::size_t before = pair >> 32U, later = pair & 0xFFFFFFFFU;
      if (before == later && plan_.lanes[later / kinds].coalesce) return false;
      if (before != later) ++leading[later];
    }
    std::vector<std::uint32_t> free;
    for (std::uint32_t each = 0; each < leading.size(); ++each) {
      if (leading[each] == 0) free.push_back(each);
    }
    for (std::size_t i = 0; i < free.size(); ++i) {
      auto pair = std::lower_bound(pairs_.begin(), pairs_.end(), group_key(free[i], 0));
      for (; pair != pairs_.end() && *pair >> 32U == free[i]; ++pair) {
        const auto later = static_cast<std::uint32_t>(*pair);
        if (later != free[i] && --leading[later] == 0) free.push_back(later);
      }
    }
    return free.size() == leading.size();
  }

  const Plan& plan_;
  std::vector<PatternWaits> of_pattern_;
  std::vector<std::uint64_t> pairs_;
};

Violation wait_cycle(const Refit& refit, const Plan& plan, const std::vector<StepPlace>& cycle) {
  const std::size_t shown = 6;
  const std::uint32_t first = cycle.front().instance;
  Violation violation{Fault::wait_cycle, plan.instances[first].tensor, {}, {}, {}};
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Instance& instance = plan.instances[cycle[i].instance];
    const Step& step = plan.pattern(instance).steps[cycle[i].step];
    if (cycle[i].instance == first) violation.steps.push_back(cycle[i].step);
    if (i == shown) text += fmt::format(", {} more", cycle.size() - shown);
    if (i >= shown) continue;
    text += fmt::format("{}tensor {} step {} (lane {}, group {})", i == 0 ? "" : ", ",
                        refit.tensors[instance.tensor.index()].tensor.name, cycle[i].step,
                        plan.lanes[lane_of(instance, step)].name, plan.group_of(instance, cycle[i].step));
  }
  violation.message = fmt::format(
      "wait cycle - {} - each waits for the one before it and the first for the last, by "
      "`after` or by the order of groups on a rank; what is waited for needs the lower group",
      text);
  return violation;
}

}  // namespace

void check_wait_cycles(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  if (Potential(plan).proves_order()) return;
  const std::vector<StepPlace> cycle = find_wait_cycle(plan);
  if (cycle.empty()) return;
  report(proof, limits, [&] { return wait_cycle(refit, plan, cycle); });
}

}  // namespace isthmus
