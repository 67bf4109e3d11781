#pragma once
// Random small loads for the fluid solver, the textbook's answer to them, and a run of the solver that checks
// it at every instant. The answer: a full water-fill in long doubles at each event, flow by flow.
// Invariant: equal seeds give equal cases.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sim/fluid.hpp"

namespace isthmus::sim::cases {

struct ClassCase {
  std::vector<Usage> usages;
  Sharing sharing;
};
struct FlowCase {
  std::uint32_t flow_class = 0;
  std::int64_t start = 0;  // picoseconds
  std::int64_t amount = 1;
};
struct CapacityCase {  // from `start` on
  std::int64_t start = 0;
  std::uint32_t resource = 0;
  std::int64_t capacity = 0;
};
struct FluidCase {
  std::vector<std::int64_t> capacities;
  std::vector<ClassCase> classes;
  std::vector<FlowCase> flows;
  std::vector<CapacityCase> changes;
};

/// Routes of up to five resources, shares, priorities, caps, empty flows, faults that end.
FluidCase random_fluid_case(std::uint64_t seed);

/// In picoseconds.
std::vector<long double> naive_ends(const FluidCase& input);

struct SolvedCase {
  std::vector<Instant> ends;
  std::string wrong;  // empty: every check passed
};
/// Checks at each instant: certificate, rates equal to those of a solver that starts from nothing; at the end
/// that each flow moved what it should and no resource more than it could.
SolvedCase solve_case(const FluidCase& input);

}  // namespace isthmus::sim::cases
