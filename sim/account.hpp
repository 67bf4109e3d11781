#pragma once
// What a finished timeline says: who the time belongs to, bytes over network and NVLink, what binds. The
// formulas stand in sim/simulation.hpp; staging memory is counted by sim/staging.hpp.
// Invariant: bulk + misc + other = time, to the picosecond.

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "sim/flows.hpp"
#include "sim/simulation.hpp"

namespace isthmus::sim {

/// Fills everything but the timeline, which must be complete, and the staging memory (sim/staging.hpp).
void account(const Refit& refit, const Operations& operations, const Calibration& calibration,
             const std::vector<Work>& work, Prediction& prediction);

}  // namespace isthmus::sim
