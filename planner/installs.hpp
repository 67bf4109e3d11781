#pragma once
// What engines do after the last write: a plan for tensors that have to be installed (RefitTensor::install)
// ends, on every target rank, with a load of the whole shard from target to target.
// Invariant: a plan that check() proves but for `not_installed` is proven afterwards. The loads stand on a
// lane of their own, so nothing but each other waits for them; shards that loads of the plan take already
// get none.

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// Requires that the plan names no rank, pattern or tensor that does not exist.
Plan with_installs(const Refit& refit, Plan plan);

}  // namespace isthmus
