#pragma once
// How many network rounds of `balanced` are in flight at a time. Many (16) average out what rounds hold more
// of one port than of another; but when the network ends, half of them still has to be passed on over NVLink,
// and at the start NVLink waits for the first to end. Where NVLink has nearly as much to do as the network
// and rounds hold about as much of every port, few (3: one ends, one is under way, one begins) are better.
// Estimated loss, of the time of the network's busiest port: unevenness / 2 + NVLink's share x window /
// (2 x rounds). Unevenness: what stretches of `window` rounds take one after another, beyond that time;
// simulations of 20 scenarios, wire-only, lose 0.3 to 0.7 of it where NVLink has little to do.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "planner/rounds.hpp"

namespace isthmus {

inline constexpr std::uint32_t many_in_flight = 16, few_in_flight = 3;

/// What the busiest NVLink port takes of the time of the busiest NIC, at nominal rates; 0 without NICs.
double nvlink_share(const Refit& refit, const Plan& plan);

/// What stretches of so many rounds, each as long as its busiest port needs, lose against the busiest port.
double unevenness(const std::vector<Transfer>& transfers, const std::vector<std::uint32_t>& rounds,
                  std::uint32_t stretch);

/// Of transfers that feed none of their lane, in the rounds given.
std::uint32_t rounds_in_flight(const Refit& refit, const Plan& plan, const std::vector<Transfer>& transfers,
                               const std::vector<std::uint32_t>& rounds);

}  // namespace isthmus
