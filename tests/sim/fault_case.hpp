#pragma once
// Random refits of two tensors on four DGX H100 hosts, faults that meet them, and a textbook's answer: one
// flow after the other, a full water-fill in long doubles at each event, plain vectors for everything.
// The answer knows the network alone (wire-only), point-to-point messages, and the rules stop and retry.
// Invariant: equal seeds give equal cases.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"

namespace isthmus::sim::cases {

/// Sources on the first two hosts, targets on the others.
Refit fault_refit(std::uint64_t seed);

/// One or two faults of NICs, GPUs, hosts or the leaf within `healthy`, some of which end.
std::vector<MachineFault> random_faults(std::uint64_t seed, Duration healthy);

struct NaiveFaultRun {
  std::vector<long double> ends;  // in picoseconds; below 0: never complete
};
NaiveFaultRun naive_fault_run(const Refit& refit, const Operations& operations,
                              const Disturbances& disturbances);

}  // namespace isthmus::sim::cases
