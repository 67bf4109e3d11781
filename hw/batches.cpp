#include "hw/batches.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// The groups of one rank on one lane, in ascending order.
struct GroupQueue {
  std::vector<std::vector<std::uint32_t>> groups;  // operations
  std::vector<std::size_t> left;                   // of each group, not complete
  std::size_t opened = 0, done = 0, window = 1;
};

class BatchMaker {
 public:
  explicit BatchMaker(const Operations& operations)
      : operations_(operations),
        waits_(operations.list.size()),
        dependents_(operations.list.size()),
        slots_(operations.list.size()) {
    make_queues();
    for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
      const auto after = operations.dependencies(operations.list[i]);
      waits_[i] = after.size() + slots_[i].size();
      for (const std::uint32_t earlier : after) dependents_[earlier].push_back(i);
    }
  }

  std::vector<Batch> run() {
    for (GroupQueue& queue : queues_) open(queue);
    std::size_t issued = 0;
    while (!ready_.empty()) {
      const std::vector<std::uint32_t> wave = std::exchange(ready_, {});
      issued += wave.size();
      emit(wave);
      for (const std::uint32_t operation : wave) complete(operation);
    }
    if (issued < operations_.list.size()) {
      throw SystemError(fmt::format("{} of {} operations wait for each other: the plan is not a proven one",
                                    operations_.list.size() - issued, operations_.list.size()));
    }
    return std::move(batches_);
  }

 private:
  using Slot = std::pair<std::size_t, std::size_t>;  // queue, group in it

  std::vector<Rank> ranks_of(const Operation& operation) const {
    if (operations_.collective(operation)) return operations_.members[operation.members];
    if (operation.source == operation.target) return {operation.source};
    return {operation.source, operation.target};
  }

  void make_queues() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::uint32_t, std::vector<std::uint32_t>>>
        grouped;
    for (std::uint32_t i = 0; i < operations_.list.size(); ++i) {
      const Operation& operation = operations_.list[i];
      for (const Rank rank : ranks_of(operation))
        grouped[{operation.lane.value, rank.value}][operation.group].push_back(i);
    }
    for (auto& [key, groups] : grouped) {
      GroupQueue queue;
      queue.window = operations_.lanes[key.first].window;
      for (auto& [group, list] : groups) {
        for (const std::uint32_t i : list) slots_[i].emplace_back(queues_.size(), queue.groups.size());
        queue.left.push_back(list.size());
        queue.groups.push_back(std::move(list));
      }
      queues_.push_back(std::move(queue));
    }
  }

  void open(GroupQueue& queue) {
    while (queue.done < queue.opened && queue.left[queue.done] == 0) ++queue.done;
    for (; queue.opened < std::min(queue.groups.size(), queue.done + queue.window); ++queue.opened) {
      for (const std::uint32_t operation : queue.groups[queue.opened]) met(operation);
    }
  }

  void met(std::uint32_t operation) {
    if (--waits_[operation] == 0) ready_.push_back(operation);
  }

  void complete(std::uint32_t operation) {
    for (const auto& [queue, group] : slots_[operation]) {
      if (--queues_[queue].left[group] == 0) open(queues_[queue]);
    }
    for (const std::uint32_t dependent : dependents_[operation]) met(dependent);
  }

  void emit(const std::vector<std::uint32_t>& wave) {
    std::map<std::uint32_t, Batch> by_lane;
    for (const std::uint32_t operation : wave)
      by_lane[operations_.list[operation].lane.value].operations.push_back(operation);
    for (auto& [lane, batch] : by_lane) {
      batch.lane = {lane};
      std::sort(batch.operations.begin(), batch.operations.end());
      batches_.push_back(std::move(batch));
    }
  }

  const Operations& operations_;
  std::vector<GroupQueue> queues_;
  std::vector<std::size_t> waits_;                      // by operation: ranks and operations to wait for
  std::vector<std::vector<std::uint32_t>> dependents_;  // by operation
  std::vector<std::vector<Slot>> slots_;                // by operation
  std::vector<std::uint32_t> ready_;
  std::vector<Batch> batches_;
};

}  // namespace

std::vector<Batch> make_batches(const Operations& operations) { return BatchMaker(operations).run(); }

}  // namespace isthmus::hw
