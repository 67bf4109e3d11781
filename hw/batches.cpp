#include "hw/batches.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hw/ready.hpp"
#include "model/error.hpp"

namespace isthmus::hw {

std::vector<Batch> make_batches(const Operations& operations) {
  std::vector<Batch> batches;
  ReadyOperations queue(operations);
  std::vector<std::uint32_t> ready;
  queue.begin(ready);
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
    for (const std::uint32_t operation : wave) queue.complete(operation, ready);
  }
  if (queue.left() > 0) {
    throw SystemError(fmt::format("{} of {} operations wait for each other: the plan is not a proven one",
                                  queue.left(), operations.list.size()));
  }
  return batches;
}

}  // namespace isthmus::hw
