#pragma once
// GPUs made of host memory: carries out a schedule (hw/gpu_schedule.hpp) as streams, events and grouped
// sends and receives would, and nothing more. Each GPU has its queue of launches per stream; of those whose
// turn and waits allow it, the one goes on that a seed prefers, so an order that waits do not enforce shows
// up as wrong bytes in some seeds. In a group, sends and receives between two GPUs pair up in their order.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/gpu_schedule.hpp"

namespace isthmus::test {

struct InterpretedRun {
  bool stalled = false;
  std::size_t wrong = 0;  // elements of target shards
  std::string fault;      // what a GPU would have refused: bytes outside of an arena, sizes that do not pair
  std::vector<std::size_t> finished;  // launches, in the order in which they were complete on all GPUs

  bool right() const { return !stalled && wrong == 0 && fault.empty(); }
};

InterpretedRun interpret(const hw::Program& program, const hw::GpuSchedule& schedule, std::uint64_t seed,
                         std::uint32_t pass = 0);

}  // namespace isthmus::test
