#pragma once
// The order in which one process can issue a plan for all ranks at once. A batch is what becomes ready on one
// lane together, when everything issued before is complete; ranks of a lane thus start their groups in step.
// Invariant: batch i obeys the execution rule of planner/plan.hpp once the batches before it on its lane, and
// those that hold what its operations name in `after`, are complete. So the list has no wait cycle, and the
// order is the same for every GPU.

#include <cstdint>
#include <vector>

#include "planner/operations.hpp"

namespace isthmus::hw {

struct Batch {
  LaneId lane;
  std::vector<std::uint32_t> operations;  // ascending
};

/// Every operation once. Raises SystemError where operations wait for each other for ever: a plan that
/// check() has proven has none.
std::vector<Batch> make_batches(const Operations& operations);

}  // namespace isthmus::hw
