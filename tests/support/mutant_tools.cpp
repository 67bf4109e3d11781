#include "tests/support/mutant_tools.hpp"

#include <numeric>

namespace isthmus::test {

Pattern* pick_pattern(Plan& plan, Random& random) {
  std::vector<Pattern*> candidates;
  for (Pattern& pattern : plan.patterns) {
    if (!pattern.steps.empty()) candidates.push_back(&pattern);
  }
  return candidates.empty() ? nullptr : candidates[random.below(candidates.size())];
}

Pattern& pattern_of(Plan& plan, const Step* step) {
  for (Pattern& pattern : plan.patterns) {
    if (!pattern.steps.empty() && step >= &pattern.steps.front() && step <= &pattern.steps.back())
      return pattern;
  }
  return plan.patterns.front();
}

void unroll_schedule(Plan& plan) {
  std::vector<std::uint32_t> schedule;
  for (Instance& instance : plan.instances) {
    const auto begin = static_cast<std::uint32_t>(schedule.size());
    const std::size_t steps = plan.pattern(instance).steps.size();
    for (std::size_t i = 0; i < steps; ++i) schedule.push_back(plan.group_of(instance, i));
    instance.schedule = begin;
  }
  plan.schedule = std::move(schedule);
}

void rearrange(Plan& plan, Pattern& pattern, const std::vector<std::uint32_t>& kept) {
  unroll_schedule(plan);
  std::vector<std::uint32_t> schedule;
  for (Instance& instance : plan.instances) {
    const bool concerned = &plan.patterns[instance.pattern.index()] == &pattern;
    std::vector<std::uint32_t> order = kept;
    if (!concerned) {
      order.resize(plan.pattern(instance).steps.size());
      std::iota(order.begin(), order.end(), 0U);
    }
    const std::uint32_t old_begin = instance.schedule;
    instance.schedule = static_cast<std::uint32_t>(schedule.size());
    for (const std::uint32_t step : order) schedule.push_back(plan.schedule[old_begin + step]);
  }
  plan.schedule = std::move(schedule);
  Pattern result;
  result.members = pattern.members;
  std::vector<std::uint32_t> new_index(pattern.steps.size(), 0xFFFFFFFF);
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    if (new_index[kept[i]] == 0xFFFFFFFF) new_index[kept[i]] = i;
    Step step = pattern.steps[kept[i]];
    const std::uint32_t begin = step.after_begin, end = step.after_end;
    step.after_begin = static_cast<std::uint32_t>(result.after.size());
    for (std::uint32_t a = begin; a < end; ++a) {
      const std::uint32_t earlier = new_index[pattern.after[a]];
      if (earlier != 0xFFFFFFFF) result.after.push_back(earlier);
    }
    step.after_end = static_cast<std::uint32_t>(result.after.size());
    result.steps.push_back(step);
  }
  pattern = std::move(result);
}

}  // namespace isthmus::test
