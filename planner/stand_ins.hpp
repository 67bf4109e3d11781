#pragma once
// Ranks that take part in the same operations of a lane have the same queue there. One of them, the lowest,
// stands for the others from the start: 65,536 members of a broadcast are one queue, not as many slots for
// each of its operations.
// Ranks are told apart by the member lists that they stand in, those of each lane by themselves; one that
// sends, receives or works alone on a lane stands for itself there. Invariant: ranks that another one stands
// for take part in exactly the same operations of that lane as it does.

#include <cstdint>
#include <span>
#include <vector>

#include "planner/operations.hpp"

namespace isthmus {

class StandIns {
 public:
  /// `by_lane`: all operation numbers, those of one lane side by side.
  StandIns(const Operations& operations, std::span<const std::uint32_t> by_lane);

  /// The ranks that take part in an operation, each once, without those that another one stands for.
  template <class Visit>
  void for_each(std::uint32_t operation, Visit&& visit) const {
    const Operation& known = operations_.list[operation];
    if (operations_.collective(known)) {
      for (const Rank rank : lists_[list_of_[operation]]) visit(rank);
      return;
    }
    visit(known.source);
    if (known.target != known.source) visit(known.target);
  }

  /// Queues that another one stands for.
  std::size_t others() const { return others_; }

 private:
  void add_lane(std::span<const std::uint32_t> of_lane);
  void split(const std::vector<Rank>& members);
  void choose(const std::vector<std::uint32_t>& used);

  const Operations& operations_;
  std::vector<std::uint32_t> list_of_;    // by operation: into lists_
  std::vector<std::vector<Rank>> lists_;  // by lane and member list
  std::size_t others_ = 0;
  // Of the lane at hand:
  std::vector<std::uint32_t> class_of_;  // by rank; 0: in no list
  std::vector<char> alone_, kept_;       // by rank
  std::uint32_t classes_ = 1;
};

}  // namespace isthmus
