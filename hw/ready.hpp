#pragma once
// The execution rule of planner/plan.hpp, as executors follow it: which operations may run, given those that
// are complete. For each rank and lane the groups that the rank takes part in stand in ascending order, at
// most `window` of them are open; an operation waits for its group on each of its ranks, and for its
// dependencies. Invariant: an operation becomes ready exactly once, when the last of its waits is over.
// A value: a copy taken before begin() starts the plan again.

#include <cstdint>
#include <vector>

#include "planner/operations.hpp"

namespace isthmus::hw {

class ReadyOperations {
 public:
  explicit ReadyOperations(const Operations& operations);

  /// Opens the first groups; appends what is ready at the start.
  void begin(std::vector<std::uint32_t>& ready);
  /// Appends what the end of an operation makes ready.
  void complete(std::uint32_t operation, std::vector<std::uint32_t>& ready);
  /// Operations that are not complete.
  std::size_t left() const { return left_; }

 private:
  /// One group of one rank on one lane.
  struct OpenGroup {
    std::uint32_t first = 0, count = 0;  // in members_
    std::uint32_t left = 0;              // operations that are not complete
    std::uint32_t walk = 0;
  };
  /// The groups of one rank on one lane.
  struct GroupWalk {
    std::uint32_t first = 0, count = 0;  // in groups_
    std::uint32_t done = 0, opened = 0;  // of them, from the first on
    std::uint32_t window = 1;
  };

  void add_groups(const Operations& operations);
  void add_dependents(const Operations& operations);
  void open(GroupWalk& walk, std::vector<std::uint32_t>& ready);
  void one_wait_less(std::uint32_t operation, std::vector<std::uint32_t>& ready);

  std::vector<GroupWalk> walks_;
  std::vector<OpenGroup> groups_;
  std::vector<std::uint32_t> members_;                      // operations, group by group
  std::vector<std::uint32_t> first_group_, groups_of_;      // by operation: its group on each rank
  std::vector<std::uint32_t> first_dependent_, dependent_;  // by operation
  std::vector<std::uint32_t> waits_;                        // by operation
  std::size_t left_ = 0;
};

}  // namespace isthmus::hw
