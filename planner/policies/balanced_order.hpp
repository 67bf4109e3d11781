#pragma once
// One order for all steps of `balanced`, over all tensors and pipeline stages: the round is a step's group.
// Transfers between GPUs are spread over rounds (rounds.hpp). With 16 rounds in flight, or 3
// (rounds_in_flight.hpp), and 128 over NVLink and where a transfer feeds several, ports stay busy although
// slots differ in size; what passes bytes on follows as many rounds later (over NVLink at most a sixteenth of
// all), when they have mostly arrived. NVLink passes of what a network round brought belong to the round
// after it; so without chains the last network rounds are halved, unless they are small or NICs are lent.
// Blocks. Tensors with one pattern and equal bases send the same bytes between the same GPUs, and a slot of
// rounds.hpp joins several transfers of a pair anyway. So in a plan of more than `most_single_steps` steps as
// many share their rounds, and their part of Plan::schedule, as bring no step above half a round's bytes: a
// fifth of the work. Smaller plans do without; they would lose 0.1 to 0.5 % of time.
// What goes to the lender of a NIC goes one round before it leaves from there; what comes to one goes on in
// the round after (nic_lending.hpp).
// Invariant: instances share a range of the schedule only where pattern and bases are equal.

#include <array>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

struct BalancedRounds {
  std::array<std::uint32_t, 2> rounds{};  // by lane
  std::array<Bytes, 2> bytes{};           // by lane: that a port moves in one if the bound is met
  std::size_t most_single_steps = 8'000'000;
  std::array<Bytes, 2> smallest{{{2'000'000}, {16'000'000}}};  // by lane: rounds hold at least this
};

std::vector<Lane> balanced_lanes();

/// Gives every step of every instance its round. The plan has the lanes above, and `lending_lane` where NICs
/// are lent.
void order_balanced(const Refit& refit, const BalancedRounds& wanted, Plan& plan);

}  // namespace isthmus
