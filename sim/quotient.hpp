#pragma once
// Symmetry: operations that must run at the same times, found by colour refinement, run once for all.
// Operations, flow classes and resources get colours; colours are refined until equal ones look alike:
//   operations  equal delays, group sizes and phases; flow classes of equal colours; equally many waits for
//               operations of each colour, at equal places of equal queues
//   classes     equal loads on resources of each colour; equally many operations of each colour
//   resources   equal capacities; equal loads by classes of each colour
// Such a partition is equitable: max-min rates, rounded as sim/levels.hpp rounds them, are equal over each
// part. One member with the loads of all of them runs exactly as each of them would, to the picosecond.
// Parts of operations are found once, with every term of the cost model at work; each calibration then
// colours its classes and resources, and refuses parts whose members it tells apart. Colours are hashes of 64
// bits.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/operations.hpp"
#include "planner/queues.hpp"
#include "sim/flows.hpp"

namespace isthmus::sim {

struct Parts {
  std::vector<std::uint32_t> part_of;         // by operation
  std::vector<std::uint32_t> representative;  // by part: its first operation
  QueuePlan queues;                           // of parts
};

/// None where more than 1 / `least` of the operations would be left.
std::optional<Parts> find_parts(const Refit& refit, const Operations& operations, const Routes& routes,
                                const QueuePlan& queues, std::size_t least);

/// What a simulation of parts shares in place of Flows.
struct PartFlows {
  Fluid fluid;
  std::vector<Demand> demands;  // by part
};

/// None where the members of a part differ.
std::optional<PartFlows> part_flows(const Parts& parts, const Flows& flows);

}  // namespace isthmus::sim
