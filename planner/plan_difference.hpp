#pragma once
// What a plan moves in all, and where two plans differ.
// Two plans are equal when they are for the same refit, have equal lanes and buffers, and carry each tensor
// by the same steps: same kinds, global ranks, buffers, regions, lanes, groups, parts and dependencies,
// whatever patterns these stand in and in which order instances are listed. The policies' names do not count.
// Works on any plan that can be read; sums end at 2^63 - 1.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/check.hpp"
#include "planner/plan_file.hpp"

namespace isthmus {

struct PlanTraffic {
  std::size_t steps = 0;
  Bytes bytes;  // what arrives: of a collective its region once for each member but one
  friend bool operator==(const PlanTraffic&, const PlanTraffic&) = default;
};

struct PlanTotals {
  PlanTraffic all;
  std::map<StepKind, PlanTraffic> by_kind;
  std::vector<PlanTraffic> by_lane;                // one more for lanes that do not exist
  std::map<std::pair<Rank, Rank>, Bytes> by_pair;  // sends, puts, and broadcasts from the root to each other
};
PlanTotals plan_totals(const Refit& refit, const Plan& plan);

/// What arrives by a step, of the elements that the tensor has.
Bytes step_bytes(const Refit& refit, const Plan& plan, const Instance& instance, const Step& step);

/// Of one tensor: the first step that is not the same, by its index; the shorter list may end there.
struct StepDifference {
  std::string tensor;
  std::size_t first = 0, second = 0;  // instances
  std::uint32_t step = 0;
  bool staging = false;  // the steps are equal; the staging buffers or the refit are not
};

struct PlanDifference {
  std::vector<Violation> identity;                   // the second plan's refit asked of the first one's
  bool lanes = false, buffers = false;               // they differ
  std::vector<std::string> only_first, only_second;  // tensors that one of them carries
  std::vector<StepDifference> steps;                 // tensors that both carry
  bool equal() const;
};
PlanDifference plan_difference(const PlanFile& first, const PlanFile& second);

}  // namespace isthmus
