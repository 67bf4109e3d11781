#pragma once
// When each operation of a plan ran, predicted or measured. The simulator and the executors return this
// value. Times are picoseconds since the refit began.
// Invariants: ready <= end; the cause (where there is one) ended at or before `ready`.

#include <cstdint>
#include <string>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

struct Span {
  static constexpr std::uint32_t no_cause = 0xFFFFFFFF;
  Instant ready;                   // its group was started by all ranks and its dependencies were complete
  Instant end;                     // last byte arrived
  std::uint32_t cause = no_cause;  // the operation whose end made it ready; none at the start of the timeline
};

struct Timeline {
  std::vector<Span> spans;        // one per operation of planner/operations.hpp
  std::vector<Bytes> link_bytes;  // bytes carried per link of the fabric
  Instant end;                    // makespan

  /// Operations from the first to the last on the chain of causes that ends last.
  std::vector<std::uint32_t> critical_path() const;
  /// A hash of all times: equal for equal runs on any machine.
  std::uint64_t digest() const;
};

}  // namespace isthmus
