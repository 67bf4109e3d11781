#pragma once
// What stands in the live buffers of each target rank when a run has ended: bytes per tensor, by steps
// that completed, and by those that failed as far as they had come (steps that travel as one operation in
// order; a collective equally far on all members). Bytes in staging do not count.
// Invariants: arrived <= wanted; after a complete run they are equal everywhere.
// Serving. A rank may go on serving the old weights while nothing has been written into its live buffers, not
// even in part; it may serve the new ones when all of its tensors are complete; else neither.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/plan.hpp"
#include "sim/outcome.hpp"

namespace isthmus::sim {

enum class Serves : std::uint8_t { old_weights, new_weights, neither };

struct TensorArrival {
  TensorId tensor;
  Bytes wanted, arrived;
};

struct RankArrival {
  Rank rank;
  std::size_t complete = 0, partial = 0, missing = 0;  // tensors of which it has a shard
  Bytes wanted, arrived;
  Serves serves = Serves::old_weights;
  std::vector<TensorArrival> incomplete{};  // tensors that are not complete, ascending
};

/// Of all ranks that have a target shard that is not empty, ascending. `operations` are those of the plan.
std::vector<RankArrival> arrivals(const Refit& refit, const Plan& plan, const Operations& operations,
                                  const Outcome& outcome);

}  // namespace isthmus::sim
