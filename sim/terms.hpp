#pragma once
// Which terms of the cost model the makespan consists of. Each interval of the critical path, from ready to
// end of an operation A, is divided as it ran:
//   latency, enqueueing and calls   the delay before the first phase
//   export, load, memory            a phase on the host thread or in GPU memory, the wait for it included
//   a phase on links, of b bytes in a flow of b + o units: o / (b + o) of it is operation time; of the rest
//       1 - (load of the busiest link) / (load of the cap) is collective_cap, where the cap is busier; of
//       the rest 1 - achieved / nominal rate of the route is link_efficiency; what remains is wire
// Sharing lengthens all parts alike: time in which a full link moves others' bytes is wire.
// lane_window. Let a later operation B of the path have all its dependencies complete at h, before A ends:
// only its lane holds it. Of A's time after h, the share 1 - (load of the busiest resource that B needs) is
// lane_window. B: the next one or one of the next three that start another source rank's turn, whichever
// waits most. Loads are means over that time, of amounts spread evenly over phases.

#include <cstdint>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/queues.hpp"
#include "planner/timeline.hpp"
#include "sim/flows.hpp"
#include "sim/routes.hpp"
#include "sim/term.hpp"

namespace isthmus::sim {

/// A finished run. All that it refers to must outlive it.
struct FinishedRun {
  const Refit& refit;
  const Operations& operations;
  const Routes& routes;
  const Calibration& calibration;
  const QueuePlan& queues;
  const std::vector<Demand>& demands;
  const Timeline& timeline;
  const std::vector<Instant>& phase_begins;  // by operation and phase

  bool capped(std::uint32_t route) const;
  /// The route's rate for one operation alone: of its links as given, by link.
  Bandwidth rate_alone(std::uint32_t route, bool achieved) const;
  Instant phase_begin(std::uint32_t operation, std::size_t phase) const;
  Instant phase_end(std::uint32_t operation, std::size_t phase) const;
};

std::vector<Term> critical_terms(const FinishedRun& run);

}  // namespace isthmus::sim
