#pragma once
// Internal to the mutation operators: how they choose a place for a fault, and how they take steps out of a
// plan or add some without disturbing the rest. Invariant: dependencies and schedules keep pointing at the
// steps that they meant, as far as those are still there.

#include <vector>

#include "tests/support/mutants.hpp"

namespace isthmus::test {

/// Operators on dependencies, groups and lanes.
std::vector<MutationOperator> order_mutations();
/// Operators on shared staging, puts, packs, in-place gathers, versions and the cuts between steps.
std::vector<MutationOperator> staging_mutations();

inline bool collective(const Step& step) {
  return step.kind == StepKind::broadcast || step.kind == StepKind::all_gather;
}
inline bool waits(const Step& step) { return step.after_begin < step.after_end; }

/// A random pattern with steps; nullptr when there is none.
Pattern* pick_pattern(Plan& plan, Random& random);

/// A random step of all patterns that `accept` takes; nullptr when there is none.
template <class Accept>
Step* pick_step(Plan& plan, Random& random, Accept accept) {
  std::vector<Step*> candidates;
  for (Pattern& pattern : plan.patterns) {
    for (Step& step : pattern.steps) {
      if (accept(step)) candidates.push_back(&step);
    }
  }
  return candidates.empty() ? nullptr : candidates[random.below(candidates.size())];
}
inline Step* pick_step(Plan& plan, Random& random) {
  return pick_step(plan, random, [](const Step&) { return true; });
}
/// The pattern that a step of the plan belongs to.
Pattern& pattern_of(Plan& plan, const Step* step);

/// Gives every instance's groups to Plan::schedule.
void unroll_schedule(Plan& plan);
/// Replaces the steps of a pattern by the old steps of these indices, in this order (some may be gone or
/// repeated).
void rearrange(Plan& plan, Pattern& pattern, const std::vector<std::uint32_t>& kept);

}  // namespace isthmus::test
