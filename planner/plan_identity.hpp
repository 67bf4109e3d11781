#pragma once
// Whether a plan that was made for one refit may serve another: only where both have the same tensors, each
// with the same shape, dtype, ranks, placements, chunk rule and frame on both sides. The fabric and the place
// of ranks on it may differ, and so may the order of the tensors.
// Invariant: where identity_faults() finds nothing, check_against() proves exactly what check() proves on a
// plan made for the other refit. Faults are Fault::other_refit and name tensors of `asked`, if it has them.

#include <vector>

#include "model/refit.hpp"
#include "planner/check.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// At most one per tensor.
std::vector<Violation> identity_faults(const Refit& made_for, const Refit& asked);

/// The identity faults alone, where there are any; else check() on `asked`.
[[nodiscard]] Proof check_against(const Refit& made_for, const Plan& plan, const Refit& asked,
                                  const Limits& limits = {});

}  // namespace isthmus
