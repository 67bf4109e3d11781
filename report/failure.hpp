#pragma once
// What a fault during a refit costs: the plan of each policy, run healthy and with the fault, for each rule
// on failed steps. Every number is a simulation or one of these formulas (docs/faults.md):
//   lost          with the fault - healthy; where the run stopped, max(stop + timeout, recovery): all that
//                 was done until then is done again on a machine that is whole
//   deadline      the longest of these runs that completes, healthy or not, + timeout
//   goodput       refits per month with failures / without = 1 - failures per day x hit x lost / 86,400 s,
//                 at least 0, where hit = healthy / (healthy + interval) is the share of failures that meet a
//                 refit, each of which is taken to cost what this one does
//   serves        old: nothing was written in place on the rank; new: all of its tensors are complete
// A tensor is complete on a rank when all of its shard was written there, partial when some was.

#include <optional>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "sim/arrival.hpp"
#include "sim/outcome.hpp"

namespace isthmus::report {

struct FailureQuestion {
  MachineFault fault{};
  std::vector<FailedSteps> rules{FailedSteps::stop, FailedSteps::retry, FailedSteps::reroute};
  double failures_per_day = 1;
  Duration interval{};  // between a refit and the next
};

/// One run with the fault.
struct FailureRun {
  FailedSteps rule = FailedSteps::stop;
  double seconds = 0, lost_seconds = 0;
  sim::Outcome outcome{};
  std::vector<sim::RankArrival> arrivals{};  // of target ranks, ascending
  double goodput = 1, refits_per_month = 0;

  std::size_t serving(sim::Serves what) const;
};

struct FailureRow {
  std::string policy;
  std::string refused;  // why there is no plan, or that it is not proven
  double healthy_seconds = 0, deadline_seconds = 0;
  double healthy_refits_per_month = 0;
  std::vector<FailureRun> runs{};
};

struct FailureReport {
  std::string scenario, calibration;
  FailureQuestion question;
  Duration timeout;
  std::vector<FailureRow> rows{};
};

/// The fault comes on top of the scenario's own ones; the healthy runs have none, but the same background.
FailureReport judge_failure(const Refit& refit, const Calibration& calibration,
                            const std::vector<std::string>& policies, const FailureQuestion& question);

std::string to_text(const FailureReport& report);
/// The JSON of docs/json.md; with `tensors` also what is missing, by rank and tensor.
std::string to_json(const FailureReport& report, const Refit& refit, bool tensors);

}  // namespace isthmus::report
