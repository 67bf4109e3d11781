#pragma once
// From when launches ended to when operations were ready and ended: an operation ends with the last launch
// that works for it, and is ready when what its batch waits for is complete. An operation that moves nothing
// ends as soon as it is ready.
// Invariant: that of planner/timeline.hpp, for ends that grow along each stream.

#include <vector>

#include "hw/gpu_schedule.hpp"
#include "planner/timeline.hpp"

namespace isthmus::hw {

/// `ends`: by launch, when it was complete on all GPUs.
Timeline timeline_of(const Program& program, const GpuSchedule& schedule, const std::vector<Instant>& ends);

}  // namespace isthmus::hw
