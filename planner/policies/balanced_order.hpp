#pragma once
// One order for all steps of `balanced`, over all tensors and pipeline stages: each step's round is its group.
// Transfers between GPUs are spread over rounds (rounds.hpp). With `window` rounds in flight (`fan_window`
// over NVLink, and where a transfer feeds several) ports stay busy although slots differ in size; what passes
// bytes on follows `window` rounds later, when they have mostly arrived. NVLink passes of what a network
// round brought belong to the round after it.
// Blocks. Tensors with one pattern and equal bases send the same bytes between the same GPUs, and a slot of
// rounds.hpp joins several transfers of a pair anyway. In a plan of more than `most_single_steps` steps, so
// many of them that no step has more than half a round's bytes share their rounds, and their part of
// Plan::schedule: a quarter of the work and memory for the same time. Smaller plans stay a little better
// without (0.1 to 3 %). Invariant: instances share a range of the
// schedule only where pattern and bases are equal.

#include <array>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

struct BalancedRounds {
  std::array<std::uint32_t, 2> rounds{};  // by lane
  std::array<Bytes, 2> bytes{};           // by lane: that a port moves in one if the bound is met
  std::size_t most_single_steps = 4'000'000;
};

/// Rounds hold at least this, by lane: about 10 operations' fixed cost.
inline constexpr Bytes smallest_unit[] = {{2'000'000}, {16'000'000}};

/// Gives the plan its two lanes, and every step of every instance its round.
void order_balanced(const Refit& refit, const BalancedRounds& wanted, Plan& plan);

}  // namespace isthmus
