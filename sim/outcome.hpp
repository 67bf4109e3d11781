#pragma once
// How a run under faults ended: which operations failed for good, with what they had moved by then, and which
// never started because of them. Without faults all is empty.
// Moved: of an operation's bytes the share of its flow that had drained, rounded down; of several attempts
// the furthest counts, as each begins anew.
// Invariant: an operation is complete, or failed, or never started.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/units.hpp"

namespace isthmus::sim {

struct FailedOperation {
  std::uint32_t operation = 0;
  Instant when;
  Bytes moved;
};

struct Outcome {
  std::vector<FailedOperation> failed{};       // in the order of time
  std::vector<std::uint32_t> never_started{};  // ascending
  std::size_t failures = 0;                    // of attempts
  std::size_t detours = 0;                     // attempts that took a way around
  Bytes repeated{};                            // what failed attempts moved in vain

  bool stopped() const { return !failed.empty(); }
};

}  // namespace isthmus::sim
