#pragma once
// The checker's twin: executes a plan on element ids in host memory and looks at what arrived. It follows the
// execution rule of planner/plan.hpp literally and goes through elements one by one; it shares no function
// with planner/check*.cpp or model/layout.cpp, so that agreement of the two means something. Schedules are
// adversarial: ranks start groups and operations read as early as the rule allows, and among the operations
// in flight the one with the lowest priority finishes first. Priorities come from a seed. Buffers start as
// poison (0); a read of what a rank does not hold moves poison on, and the end state shows it. What fused
// views place in one buffer shares its memory, so that what does not fit together overwrites.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus::test {

using Element = std::vector<std::int64_t>;

/// True when the rank at this row-major mesh position holds the element: found by asking which piece it falls
/// into.
bool twin_holds(const Layout& layout, std::size_t position, const Element& element);
/// All elements of a shape, in row-major order.
std::vector<Element> elements_of(const std::vector<std::int64_t>& shape);

struct TwinSchedule {
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
  std::uint64_t seed = 0;        // 0: in order of appearance; 1: the reverse; others: shuffled
  std::size_t starved = nobody;  // an operation that finishes only when no other one can
};

struct TwinResult {
  std::string impossible;   // not empty: the plan names what does not exist, nothing was executed
  bool stalled = false;     // some operation could never run
  std::size_t missing = 0;  // target elements that hold poison at the end
  std::size_t twice = 0;    // target elements that were written more than once
  std::size_t outside = 0;  // writes outside a target shard, or outside the buffer of an instance's staging
  std::size_t target_elements = 0;
  std::size_t operations = 0;
  std::size_t largest_group = 0;  // operations of one rank in one group of one lane, the most
  std::int64_t largest_size = 0;  // bytes of a message, a copy or a staging buffer
  std::size_t largest_puts = 0;   // puts from one rank to another in flight at once, the most
  std::string first_fault;

  bool correct() const {
    return impossible.empty() && !stalled && missing == 0 && twice == 0 && outside == 0;
  }
};

/// The target shards at the end, one after the other by tensor, rank and element: what each byte holds.
using EndState = std::vector<std::uint64_t>;

/// Holds what all runs for one refit share: the elements and who has which.
class Twin {
 public:
  explicit Twin(const Refit& refit);
  /// `end` is where the end state goes.
  TwinResult run(const Plan& plan, TwinSchedule schedule = {}, EndState* end = nullptr) const;
  static constexpr std::size_t most_starved = 128;
  /// True when `found` says so of the result of some schedule: four orders, then each operation starved in
  /// turn (of more than most_starved, as many spread evenly).
  bool under_some_schedule(const Plan& plan, const std::function<bool(const TwinResult&)>& found) const;

 private:
  friend class TwinRun;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  /// Where a rank keeps the elements of its shard: in a memory of the shard's own, or in one that fused views
  /// of several tensors share.
  struct Place {
    std::size_t memory = nowhere;
    std::vector<std::size_t> at{};  // by element; empty where it is the element's own number
    std::size_t of(std::size_t element) const { return at.empty() ? element : at[element]; }
  };
  struct Tensor {
    std::vector<Element> elements;
    std::vector<std::vector<bool>> source,
        target;  // by global rank, by element; empty where the rank has no shard
    std::vector<Place> source_place{}, target_place{};  // by global rank
  };
  std::vector<Place> places_of(std::size_t tensor, const std::vector<std::vector<bool>>& held,
                               const std::optional<FusedView>& view, bool source);
  Place fused_place(std::size_t tensor, const std::vector<bool>& held, const FusedView& view,
                    std::size_t memory);

  const Refit& refit_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> memory_size_;                                     // by memory, in elements
  std::map<std::tuple<bool, std::string, std::size_t>, std::size_t> fused_;  // by side, base and rank
};

}  // namespace isthmus::test
