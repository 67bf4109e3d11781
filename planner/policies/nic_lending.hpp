#pragma once
// Lets GPUs of an NVLink domain send and receive through each other's NICs, as a change of a finished plan of
// sends: how much by nic_loans.hpp, in what steps by lent_pattern.hpp. Whole steps are lent, those of most
// bytes first, and cut where a loan ends. Instances of one pattern on the same ranks change alike.

#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "planner/policies/lent_pattern.hpp"

namespace isthmus {

/// Changes the plan where that brings its busiest link nearer to `least` and is worth it; returns whether.
/// Requires instances without a schedule, and `lending_lane` to be the next lane.
bool lend_nics(const Refit& refit, Duration least, Plan& plan);

/// Renumbers the patterns that instances have, and drops the others.
void drop_unused_patterns(Plan& plan);

}  // namespace isthmus
