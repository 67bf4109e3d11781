#pragma once
// Internal to the checker: staging in buffers that instances share. Requires that no instance is malformed.
//
// Reuse. Two instances whose staging meets on a rank must not mix there. All that the plan says about their
// order is the order of groups: on one lane a rank starts its k-th group when its (k - window)-th is done.
// So the earlier instance's last use and the later one's first write must lie on one lane, at least `window`
// of the rank's groups apart. Uses of one instance are ordered by `after`, which ownership proves.

#include "model/refit.hpp"
#include "planner/check.hpp"
#include "planner/plan.hpp"

namespace isthmus {

void check_buffers(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof);

}  // namespace isthmus
