#pragma once
// Internal to the checker: what spans instances. All but check_lanes() require that nothing is malformed.
//
// Wait cycles. The execution rule of plan.hpp is a system of waits between two kinds of event: rank r starts
// the k-th of its groups on a lane (waits for its k-1st start and for the operations of its groups up to k -
// window), and an operation completes (waits for the start of its group on each of its ranks, and for the
// operations in `after`). Waits only ever end, so a plan stalls under one schedule if and only if it stalls
// under all: exactly when this graph has a cycle. Most plans need no graph. Give every event of group g the
// potential g, starts before operations: all waits of the rule go upwards. So if every dependency leads to a
// higher group, or within a group from class to class without a cycle of classes (lane and kind: what
// coalesces is of one class), or within a group and class of a lane that does not coalesce (steps name
// earlier steps), there is no cycle.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/refit.hpp"
#include "planner/check.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// Counts all violations, keeps the first ones; `make` is called for those alone.
template <class Make>
void report(Proof& proof, const Limits& limits, Make make) {
  ++proof.violation_count;
  if (proof.violations.size() < limits.most_violations) proof.violations.push_back(make());
}

void check_group_sizes(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof);
void check_wait_cycles(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof);

/// Lanes and splits that name what does not exist; true when there are none.
bool check_lanes(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof);
/// Communicators that are never made, and steps whose ranks have none in common.
void check_communicators(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof);
/// Scales whose ranks do not hold the values that they are computed of.
void check_scales(const Refit& refit, const Limits& limits, Proof& proof);
/// Puts into another NVLink domain, and more of them in flight than allowed.
void check_puts(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof);

/// Instances of one pattern, bases, lane and groups: their steps are the same operations where the lane
/// coalesces, and wait alike everywhere.
struct EqualInstances {
  std::uint32_t first = 0, count = 0;
};
/// All instances, each counted once.
std::vector<EqualInstances> equal_instances(const Plan& plan);

/// One step of one instance.
struct StepPlace {
  std::uint32_t instance = 0, step = 0;
};

/// The steps of one wait cycle, each waiting for the one before it and the first for the last; empty when
/// there is none. Builds the whole graph.
std::vector<StepPlace> find_wait_cycle(const Plan& plan);

inline std::span<const std::uint32_t> dependencies(const Pattern& pattern, const Step& step) {
  return std::span(pattern.after).subspan(step.after_begin, step.after_end - step.after_begin);
}

constexpr std::uint32_t lane_of(const Instance& instance, const Step& step) {
  return instance.lane.value + step.lane;
}

/// Lane and group in one number.
constexpr std::uint64_t group_key(std::uint32_t lane, std::uint32_t group) {
  return std::uint64_t{lane} << 32U | group;
}

/// Calls visit(global rank) for every rank that takes part in a step, each once.
template <class Visit>
void for_each_rank(const Plan& plan, const Instance& instance, const Step& step, Visit visit) {
  if (is_collective(step.kind)) {
    for (const LocalRank rank : plan.pattern(instance).members[step.members])
      visit(global_rank(instance, rank).value);
    return;
  }
  const std::uint32_t source = global_rank(instance, step.source).value;
  const std::uint32_t target = global_rank(instance, step.target).value;
  visit(source);
  if (target != source) visit(target);
}

/// What steps of one group on a coalescing lane must share to be one operation.
struct OperationKey {
  std::uint64_t where = 0;  // lane and group
  std::uint64_t ranks = 0;  // source and target, or the root
  std::uint64_t what = 0;   // kind, buffers and member list
  friend bool operator==(const OperationKey&, const OperationKey&) = default;
};

struct OperationKeyHash {
  std::size_t operator()(const OperationKey& key) const noexcept;
};

/// Makes operation keys. Member lists are numbered by their global ranks, so that equal lists of different
/// patterns or bases get equal numbers.
class OperationKeys {
 public:
  explicit OperationKeys(const Plan& plan) : plan_(plan) {}
  OperationKey key(const Instance& instance, std::size_t step_index);

 private:
  std::uint32_t number_of_members(const Instance& instance, std::uint32_t list);

  struct ListHash {
    std::size_t operator()(const std::vector<std::uint32_t>& ranks) const noexcept;
  };
  const Plan& plan_;
  std::unordered_map<OperationKey, std::uint32_t, OperationKeyHash>
      number_of_bound_;  // by pattern, list and bases
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, ListHash> number_of_list_;
};

}  // namespace isthmus
