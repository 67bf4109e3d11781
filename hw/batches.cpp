#include "hw/batches.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/queues.hpp"

namespace isthmus::hw {

std::vector<Batch> make_batches(const Operations& operations) {
  std::vector<Batch> batches;
  const QueuePlan plan(operations);
  Queues queues(plan);
  std::vector<std::uint32_t> ready;
  queues.begin(ready);
  while (!ready.empty()) {
    std::vector<std::uint32_t> wave = std::exchange(ready, {});
    std::sort(wave.begin(), wave.end());
    std::map<std::uint32_t, Batch> by_lane;
    for (const std::uint32_t operation : wave) {
      const LaneId lane = operations.list[operation].lane;
      Batch& batch = by_lane[lane.value];
      batch.lane = lane;
      batch.operations.push_back(operation);
    }
    for (auto& [lane, batch] : by_lane) batches.push_back(std::move(batch));
    for (const std::uint32_t operation : wave) queues.complete(operation, ready);
  }
  if (queues.waiting() > 0) {
    throw SystemError(fmt::format("{} of {} operations wait for each other: the plan is not a proven one",
                                  queues.waiting(), operations.list.size()));
  }
  return batches;
}

}  // namespace isthmus::hw
