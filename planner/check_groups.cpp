#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29U);
}

/// Steps per lane and group, over all ranks.
class GroupTotals {
 public:
  explicit GroupTotals(const Plan& plan) : plan_(plan), of_pattern_(plan.patterns.size()) {
    for (const Instance& instance : plan.instances) {
      if (instance.schedule == Instance::no_schedule) {
        count_pattern(instance);
      } else {
        count_steps(instance);
      }
    }
  }

  /// The groups with more steps than the limit, sorted: no rank of another group can be above it.
  std::vector<std::uint64_t> above(std::size_t limit) const {
    std::vector<std::uint64_t> keys;
    for (const auto& entry : total_) {
      if (entry.second > limit) keys.push_back(entry.first);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

 private:
  struct Count {
    std::uint32_t lane, group;
    std::size_t steps;
  };

  void count_pattern(const Instance& instance) {
    std::vector<Count>& counts = of_pattern_[instance.pattern.index()];
    if (counts.empty()) counts = count(plan_.pattern(instance));
    for (const Count& count : counts) {
      total_[group_key(instance.lane.value + count.lane, instance.group + count.group)] += count.steps;
    }
  }

  static std::vector<Count> count(const Pattern& pattern) {
    std::unordered_map<std::uint64_t, std::size_t> steps;
    for (const Step& step : pattern.steps) ++steps[group_key(step.lane, step.group)];
    std::vector<Count> counts;
    for (const auto& entry : steps) {
      counts.push_back({static_cast<std::uint32_t>(entry.first >> 32U),
                        static_cast<std::uint32_t>(entry.first), entry.second});
    }
    return counts;
  }

  void count_steps(const Instance& instance) {
    const std::vector<Step>& steps = plan_.pattern(instance).steps;
    std::uint64_t last = 0;
    std::size_t* total = nullptr;  // steps of one group tend to follow each other
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::uint64_t key = group_key(lane_of(instance, steps[i]), plan_.schedule[instance.schedule + i]);
      if (total == nullptr || key != last) total = &total_[key];
      last = key;
      ++*total;
    }
  }

  const Plan& plan_;
  std::vector<std::vector<Count>> of_pattern_;
  std::unordered_map<std::uint64_t, std::size_t> total_;
};

/// The steps of some groups (sorted keys), group by group.
std::vector<std::vector<StepPlace>> steps_of(const Plan& plan, const std::vector<std::uint64_t>& keys) {
  std::vector<std::vector<StepPlace>> steps(keys.size());
  for (std::uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const std::vector<Step>& pattern_steps = plan.pattern(instance).steps;
    for (std::uint32_t s = 0; s < pattern_steps.size(); ++s) {
      const std::uint64_t key = group_key(lane_of(instance, pattern_steps[s]), plan.group_of(instance, s));
      const auto found = std::lower_bound(keys.begin(), keys.end(), key);
      if (found != keys.end() && *found == key) steps[to_size(found - keys.begin())].push_back({i, s});
    }
  }
  return steps;
}

Violation too_large(const Plan& plan, std::uint64_t key, std::uint32_t rank, std::size_t operations,
                    TensorId tensor, std::size_t limit) {
  const std::size_t groups = limit == 0 ? operations : (operations + limit - 1) / limit;
  return {Fault::group_too_large,
          tensor,
          {},
          {},
          fmt::format(
              "group {} of lane {} on rank {} - has {} operations - at most {} are allowed; use {} groups",
              key & 0xFFFFFFFFU, plan.lanes[key >> 32U].name, rank, operations, limit, groups)};
}

}  // namespace

std::size_t OperationKeyHash::operator()(const OperationKey& key) const noexcept {
  return static_cast<std::size_t>(mix(mix(mix(0, key.where), key.ranks), key.what));
}

std::size_t OperationKeys::ListHash::operator()(const std::vector<std::uint32_t>& ranks) const noexcept {
  std::uint64_t hash = ranks.size();
  for (const std::uint32_t rank : ranks) hash = mix(hash, rank);
  return static_cast<std::size_t>(hash);
}

std::uint32_t OperationKeys::number_of_members(const Instance& instance, std::uint32_t list) {
  const OperationKey bound{group_key(instance.source_base.value, instance.target_base.value),
                           instance.pattern.value, list};
  const auto known = number_of_bound_.find(bound);
  if (known != number_of_bound_.end()) return known->second;
  std::vector<std::uint32_t> ranks;
  for (const LocalRank rank : plan_.pattern(instance).members[list]) {
    ranks.push_back(global_rank(instance, rank).value);
  }
  const auto next = static_cast<std::uint32_t>(number_of_list_.size());
  const std::uint32_t number = number_of_list_.try_emplace(std::move(ranks), next).first->second;
  number_of_bound_.emplace(bound, number);
  return number;
}

OperationKey OperationKeys::key(const Instance& instance, std::size_t step_index) {
  const Step& step = plan_.pattern(instance).steps[step_index];
  const bool collective = is_collective(step.kind);
  OperationKey key;
  key.where = group_key(lane_of(instance, step), plan_.group_of(instance, step_index));
  key.what = static_cast<std::uint64_t>(step.kind) << 4U | static_cast<std::uint64_t>(step.from) << 2U |
             static_cast<std::uint64_t>(step.to);
  if (collective) key.what |= std::uint64_t{number_of_members(instance, step.members)} << 8U;
  const std::uint32_t source =
      step.kind == StepKind::all_gather ? 0 : global_rank(instance, step.source).value;
  key.ranks = group_key(source, collective ? 0 : global_rank(instance, step.target).value);
  return key;
}

void check_group_sizes(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  const std::vector<std::uint64_t> keys = GroupTotals(plan).above(limits.operations_per_group);
  if (keys.empty()) return;
  OperationKeys operation_keys(plan);
  const std::vector<std::vector<StepPlace>> steps = steps_of(plan, keys);
  std::vector<std::size_t> operations(refit.ranks());
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const bool coalesce = plan.lanes[keys[k] >> 32U].coalesce;
    std::unordered_set<OperationKey, OperationKeyHash> known;
    std::fill(operations.begin(), operations.end(), 0);
    for (const StepPlace place : steps[k]) {
      const Instance& instance = plan.instances[place.instance];
      if (coalesce && !known.insert(operation_keys.key(instance, place.step)).second) continue;
      const Step& step = plan.pattern(instance).steps[place.step];
      for_each_rank(plan, instance, step, [&](std::uint32_t rank) { ++operations[rank]; });
    }
    for (std::uint32_t rank = 0; rank < operations.size(); ++rank) {
      if (operations[rank] <= limits.operations_per_group) continue;
      const TensorId tensor = plan.instances[steps[k].front().instance].tensor;
      report(proof, limits, [&] {
        return too_large(plan, keys[k], rank, operations[rank], tensor, limits.operations_per_group);
      });
    }
  }
}

}  // namespace isthmus
