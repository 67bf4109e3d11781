#pragma once
// What the page of --report shows of one policy beyond the comparison: the value of the key `report` of
// simulate's JSON (docs/report.md). Timeline, traffic between ranks, use of the fabric, critical path, and
// what the prediction assumes. Bounded by PageLimits; what is left out is counted, what is grouped is said.
// Equations: use of a link = bytes / (achieved rate x time); load of a domain in a step = bytes carried by
// its links / (their rates x step). A broadcast counts its region once for each receiver, an all-gather each
// member's share once for each other member. Invariant: the cells of `traffic` add up to its `bytes`.

#include <cstddef>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/policy.hpp"

namespace isthmus::report {

struct PageLimits {
  std::size_t events = 20'000;  // operations of the timeline
  std::size_t steps = 100;      // of each load
  std::size_t rows = 256;       // of the heat map, and domains of the timeline
  std::size_t links = 40;       // listed by name
  std::size_t gpus = 1'024;     // drawn one by one
};

/// Requires that the policy serves the refit with a plan that is proven. `assumed`: what the scenario's file
/// left open. JSON on one line.
std::string page_data(const Refit& refit, const Policy& policy, const Calibration& calibration,
                      const std::vector<std::string>& assumed, const PageLimits& limits = {});

}  // namespace isthmus::report
