#pragma once
// Plans for tests that want one of each kind that the project makes. Invariant: the order is that of
// policies(); a policy that refuses the refit has no plan here.
// Without any plan a test that loops over them would claim nothing, so callers look that there are some.

#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus::test {

/// Of all policies that serve the layout.
std::vector<Plan> plans_of(const Refit& refit);

}  // namespace isthmus::test
