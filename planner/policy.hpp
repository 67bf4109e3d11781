#pragma once
// The planning policies by name. A policy turns a refit into a plan, or refuses with the reason; it never
// fails on a layout that it does not serve. One file per policy: planner/policies/NAME.cpp.
// Plans are pure functions of the refit: equal refits give equal plans.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/refit.hpp"
#include "planner/calls.hpp"
#include "planner/plan.hpp"

namespace isthmus {

struct Refused {
  std::string reason;
};
using PlanResult = std::variant<Plan, Refused>;

struct Policy {
  std::string_view name;
  std::string_view summary;
  PlanResult (*make)(const Refit& refit);
  Program program = Program::none;  // what handles its tensors call by call
};

/// All policies that send what sources hold, in the order in which they are shown.
const std::vector<Policy>& policies();
/// `balanced` where sources quantise: on the refit of `refit.quantize_at: source` alone, which the policies
/// above refuse. Its bound, bytes and plans are those of that refit, never of the one that sends BF16.
inline constexpr std::string_view balanced_quantized = "balanced-quantized";
const Policy& quantising_policy();
/// The names of all policies that a scenario lists: with the one above where its engines want MXFP8.
std::vector<std::string> listed_policies(bool quantised);
/// nullptr when there is no policy of that name.
const Policy* find_policy(std::string_view name);

PlanResult plan_golden(const Refit& refit);
PlanResult plan_gather_broadcast(const Refit& refit);
PlanResult plan_p2p(const Refit& refit);
PlanResult plan_striped(const Refit& refit);
PlanResult plan_m2n_uniform(const Refit& refit);
PlanResult plan_m2n_node_aware(const Refit& refit);
PlanResult plan_balanced(const Refit& refit);
PlanResult plan_balanced_quantized(const Refit& refit);

}  // namespace isthmus
