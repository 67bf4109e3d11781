#pragma once
// The execution rule of planner/plan.hpp as counters: for each rank and lane the groups it takes part in, in
// order, of which at most `window` are open; for each operation how much it still waits for (ranks that have
// not opened its group, dependencies that are not complete). Invariant: an operation becomes ready exactly
// once, when its last condition is met. Queues with the same operations in the same groups, as those of all
// members of a communicator often are, open and complete together: one of them stands for all. Simulator and
// executors share this one implementation, so a plan is predicted by the rule that it is executed by.

#include <cstdint>
#include <span>
#include <vector>

#include "planner/operations.hpp"

namespace isthmus {

/// What of it no run changes: who waits for whom.
class QueuePlan {
 public:
  explicit QueuePlan(const Operations& operations);
  /// The same for parts of operations that open and complete together, in place of operations.
  QueuePlan(const QueuePlan& whole, const Operations& operations, std::span<const std::uint32_t> part_of,
            std::span<const std::uint32_t> representatives);
  /// The same with operations called by their places in order(): what runs one after the other lies side by
  /// side in memory. Everything that happens happens in the same order.
  QueuePlan by_place() const;

  /// For each operation a hash of the queues that it stands in, and where: of equal colours at equal places.
  std::vector<std::uint64_t> surroundings(const std::vector<std::uint64_t>& colours) const;
  /// The operation of a part that held the other one back: by its queues.
  std::uint32_t held_by(std::uint32_t operation, std::uint32_t part,
                        std::span<const std::uint32_t> part_of) const;

  /// All operations, lane by lane in the order of groups: about the order in which they run.
  const std::vector<std::uint32_t>& order() const { return order_; }
  /// Operations in the same group of the busiest rank that takes part in this one.
  std::uint32_t group_size(std::uint32_t operation) const { return group_size_[operation]; }
  /// Queues that another one stands for.
  std::size_t merged() const { return merged_; }

 private:
  friend class Queues;
  struct Slot {                          // one group of one rank on one lane
    std::uint32_t first = 0, count = 0;  // its operations, in members_
    std::uint32_t queue = 0;
  };
  struct Queue {                         // one rank on one lane
    std::uint32_t first = 0, count = 0;  // its slots
    std::uint32_t window = 1;
  };

  QueuePlan() = default;

  void build_slots(const Operations& operations);
  void order_slots(const Operations& operations, const std::vector<std::vector<std::uint32_t>>& by_queue);
  void list_members();
  void merge_equal_queues();
  bool equal(const Queue& a, const Queue& b) const;
  void build_dependents(const Operations& operations);
  void list_slots_of(std::size_t operations);

  std::vector<Slot> slots_;
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> order_;                         // not of parts
  std::vector<std::uint32_t> members_;                       // operations, by slot
  std::vector<std::uint32_t> first_slot_, slots_of_;         // by operation
  std::vector<std::uint32_t> first_dependent_, dependents_;  // by operation
  std::vector<std::uint32_t> waits_, group_size_;
  std::size_t merged_ = 0;
};

class Queues {
 public:
  /// The plan must outlive it.
  explicit Queues(const QueuePlan& plan);

  /// Opens the first groups; appends the operations that are ready at the start.
  void begin(std::vector<std::uint32_t>& ready);
  /// An operation is complete; appends the operations that this makes ready.
  void complete(std::uint32_t operation, std::vector<std::uint32_t>& ready);
  /// Operations that are not complete.
  std::size_t waiting() const { return left_; }

 private:
  struct Open {               // a slot
    std::uint32_t left = 0;   // operations that are not complete
    std::uint32_t queue = 0;  // here as well: one line of the cache less
  };
  struct Front {                         // of a queue
    std::uint32_t done = 0, opened = 0;  // leading slots that are complete; slots that are open
  };

  void open(std::uint32_t queue, std::vector<std::uint32_t>& ready);
  void met(std::uint32_t operation, std::vector<std::uint32_t>& ready);

  const QueuePlan& plan_;
  std::vector<Open> slots_;
  std::vector<Front> fronts_;         // by queue
  std::vector<std::uint32_t> waits_;  // by operation
  std::size_t left_ = 0;
};

}  // namespace isthmus
