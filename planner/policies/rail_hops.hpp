#pragma once
// Steps of `balanced` that no way leads for, on a fabric whose rails nothing joins: a part that has to change
// rails goes over NVLink to the GPU of its sender's domain that sits on the receiver's rail, and out through
// that GPU's NIC; or in through the GPU of the receiver's domain on the sender's rail, where the sender's has
// none. The steps are those of lent NICs (lent_pattern.hpp), on their lane.
// Invariant: where nothing is said to be left, every network step of the plan has a way.

#include <string>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// Whether the network leads from every GPU that holds or wants something to every other in another domain:
/// it is enough that it does to and from two GPUs of different domains, where routes are symmetric and go on
/// from each other, as within a rail and on joined rails.
bool rails_joined(const Refit& refit);

/// Changes the steps that need it; returns in words the first that no hop helps, or nothing. Requires
/// instances without a schedule, and `lending_lane` to be the next lane.
std::string hop_rails(const Refit& refit, Plan& plan);

}  // namespace isthmus
