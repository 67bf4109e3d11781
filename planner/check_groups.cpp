#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29U);
}

/// A value for each lane and group that is asked for; groups of small numbers lie in one array.
template <class Value>
class GroupTable {
 public:
  explicit GroupTable(const Plan& plan)
      : dense_groups_(dense_places / std::max<std::size_t>(1, plan.lanes.size())) {
    std::uint32_t groups = 0;
    for (const std::uint32_t group : plan.schedule) groups = std::max(groups, group);
    dense_groups_ = std::min<std::size_t>(dense_groups_, groups + std::size_t{1});
    dense_.resize(dense_groups_ * plan.lanes.size());
  }

  Value& at(std::uint32_t lane, std::uint32_t group) {
    return group < dense_groups_ ? dense_[lane * dense_groups_ + group] : others_[group_key(lane, group)];
  }

  /// The value, or a default one.
  Value find(std::uint32_t lane, std::uint32_t group) const {
    if (group < dense_groups_) return dense_[lane * dense_groups_ + group];
    const auto known = others_.find(group_key(lane, group));
    return known == others_.end() ? Value{} : known->second;
  }

  /// Calls visit(key, value) for all values.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < dense_.size(); ++i)
      visit(group_key(static_cast<std::uint32_t>(i / dense_groups_),
                      static_cast<std::uint32_t>(i % dense_groups_)),
            dense_[i]);
    for (const auto& entry : others_) visit(entry.first, entry.second);
  }

 private:
  static constexpr std::size_t dense_places = std::size_t{1} << 20U;
  std::size_t dense_groups_;
  std::vector<Value> dense_;  // by lane, then group
  std::unordered_map<std::uint64_t, Value> others_;
};

/// How many of equal instances' steps on a lane are operations of their own.
std::size_t copies_of(const Plan& plan, const EqualInstances& equal, std::uint32_t lane) {
  return plan.lanes[lane].coalesce ? 1 : equal.count;
}

/// Steps per lane and group, over all ranks; what surely coalesces counts once.
class GroupTotals {
 public:
  GroupTotals(const Plan& plan, const std::vector<EqualInstances>& instances)
      : plan_(plan), of_pattern_(plan.patterns.size()), total_(plan) {
    for (const EqualInstances& equal : instances) {
      if (plan.instances[equal.first].schedule == Instance::no_schedule) {
        count_pattern(equal);
      } else {
        count_steps(equal);
      }
    }
  }

  /// The groups with more steps than the limit, sorted: no rank of another group can be above it.
  std::vector<std::uint64_t> above(std::size_t limit) const {
    std::vector<std::uint64_t> keys;
    total_.for_each([&](std::uint64_t key, std::size_t steps) {
      if (steps > limit) keys.push_back(key);
    });
    std::sort(keys.begin(), keys.end());
    return keys;
  }

 private:
  struct Count {
    std::uint32_t lane, group;
    std::size_t steps;
  };

  void count_pattern(const EqualInstances& equal) {
    const Instance& instance = plan_.instances[equal.first];
    std::vector<Count>& counts = of_pattern_[instance.pattern.index()];
    if (counts.empty()) counts = count(plan_.pattern(instance));
    for (const Count& count : counts) {
      const std::uint32_t lane = instance.lane.value + count.lane;
      total_.at(lane, instance.group + count.group) += count.steps * copies_of(plan_, equal, lane);
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

  void count_steps(const EqualInstances& equal) {
    const Instance& instance = plan_.instances[equal.first];
    const std::vector<Step>& steps = plan_.pattern(instance).steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::uint32_t lane = lane_of(instance, steps[i]);
      total_.at(lane, plan_.schedule[instance.schedule + i]) += copies_of(plan_, equal, lane);
    }
  }

  const Plan& plan_;
  std::vector<std::vector<Count>> of_pattern_;
  GroupTable<std::size_t> total_;
};

/// Of some groups those in which some rank has more steps than the limit, where equal instances on lanes that
/// coalesce count once. Counts a few groups at a time, so that memory stays bounded.
class RankTotals {
 public:
  RankTotals(const Refit& refit, const Plan& plan, const std::vector<EqualInstances>& instances)
      : plan_(plan), instances_(instances), ranks_(refit.ranks()) {}

  std::vector<std::uint64_t> above(const std::vector<std::uint64_t>& keys, std::size_t limit) {
    constexpr std::size_t most_counters = std::size_t{1} << 24U;
    const std::size_t together = std::max<std::size_t>(1, most_counters / std::max<std::size_t>(1, ranks_));
    std::vector<std::uint64_t> found;
    for (std::size_t begin = 0; begin < keys.size(); begin += together) {
      const auto some = std::span(keys).subspan(begin, std::min(together, keys.size() - begin));
      count(some);
      for (std::size_t k = 0; k < some.size(); ++k) {
        const auto first = steps_.begin() + static_cast<std::ptrdiff_t>(k * ranks_);
        if (*std::max_element(first, first + static_cast<std::ptrdiff_t>(ranks_)) > limit)
          found.push_back(some[k]);
      }
    }
    return found;
  }

 private:
  void count(std::span<const std::uint64_t> keys) {
    steps_.assign(keys.size() * ranks_, 0);
    GroupTable<std::uint32_t> number(plan_);  // from 1; 0: not asked for
    for (std::size_t k = 0; k < keys.size(); ++k)
      number.at(static_cast<std::uint32_t>(keys[k] >> 32U), static_cast<std::uint32_t>(keys[k])) =
          static_cast<std::uint32_t>(k + 1);
    for (const EqualInstances& equal : instances_) {
      const Instance& instance = plan_.instances[equal.first];
      const std::vector<Step>& steps = plan_.pattern(instance).steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const std::uint32_t lane = lane_of(instance, steps[i]);
        const std::uint32_t known = number.find(lane, plan_.group_of(instance, i));
        if (known == 0) continue;
        const auto copies = static_cast<std::uint32_t>(copies_of(plan_, equal, lane));
        for_each_rank(plan_, instance, steps[i],
                      [&](std::uint32_t rank) { steps_[(known - 1) * ranks_ + rank] += copies; });
      }
    }
  }

  const Plan& plan_;
  const std::vector<EqualInstances>& instances_;
  std::size_t ranks_;
  std::vector<std::uint32_t> steps_;  // by group, then rank
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

std::vector<EqualInstances> equal_instances(const Plan& plan) {
  const auto key = [&plan](std::uint32_t i) {
    const Instance& instance = plan.instances[i];
    return std::make_tuple(instance.schedule, instance.pattern, instance.source_base, instance.target_base,
                           instance.lane, instance.group);
  };
  std::vector<std::uint32_t> order(plan.instances.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&key](std::uint32_t a, std::uint32_t b) {
    return std::make_tuple(key(a), a) < std::make_tuple(key(b), b);
  });
  std::vector<EqualInstances> result;
  for (const std::uint32_t i : order) {
    if (result.empty() || key(result.back().first) != key(i)) result.push_back({i, 0});
    ++result.back().count;
  }
  return result;
}

void check_group_sizes(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  const std::vector<EqualInstances> instances = equal_instances(plan);
  std::vector<std::uint64_t> keys = GroupTotals(plan, instances).above(limits.operations_per_group);
  if (!keys.empty()) keys = RankTotals(refit, plan, instances).above(keys, limits.operations_per_group);
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
