// The jobs of a sweep: one candidate each, from the scenario to the prediction.

#include <cmath>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/refit.hpp"
#include "planner/bound.hpp"
#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "report/sweep.hpp"
#include "report/sweep_journal.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

struct ProvenPlan {
  std::string refused;  // why there is none
  Plan plan;
};

ProvenPlan proven_plan(const Refit& refit, const std::string& policy) {
  PlanResult made = find_policy(policy)->make(refit);
  if (const Refused* refused = std::get_if<Refused>(&made)) return {refused->reason, {}};
  Plan& plan = std::get<Plan>(made);
  const Proof proof = check(refit, plan);
  if (!proof.proven()) return {"the plan could not be proven: " + proof.violations.front().message, {}};
  return {"", std::move(plan)};
}

}  // namespace

SweepOutcome sweep_outcome(const SweepSpace& space, const SweepCandidates& candidates,
                           std::uint32_t candidate) {
  const SweepCandidate& chosen = candidates.list[candidate];
  SweepOutcome outcome;
  try {
    const Refit refit = resolve(sweep_scenario(space, candidates, chosen));
    ProvenPlan proven = proven_plan(refit, candidates.policies[chosen.policy]);
    outcome.refused = std::move(proven.refused);
    if (!outcome.refused.empty()) return outcome;
    const Operations operations = expand(refit, proven.plan);
    const sim::Prediction prediction =
        sim::simulate(refit, operations, candidates.calibrations[chosen.calibration]);
    outcome.time = prediction.time;
    outcome.staging = prediction.peak_staging;
  } catch (const InputError& error) {  // what only the whole shows, such as GPUs that no way joins
    outcome.refused = fmt::format("{}: {}", error.where().key, error.message());
  }
  return outcome;
}

std::string sweep_job(const SweepSpace& space, const SweepCandidates& candidates, SweepJob kind,
                      std::uint32_t candidate) {
  return kind == SweepJob::outcome ? to_line(candidate, sweep_outcome(space, candidates, candidate))
                                   : to_line(candidate, sweep_detail(space, candidates, candidate));
}

SweepDetail sweep_detail(const SweepSpace& space, const SweepCandidates& candidates,
                         std::uint32_t candidate) {
  const SweepCandidate& chosen = candidates.list[candidate];
  const Refit refit = resolve(sweep_scenario(space, candidates, chosen));
  const ProvenPlan proven = proven_plan(refit, candidates.policies[chosen.policy]);
  ISTHMUS_ASSERT(proven.refused.empty(), "candidate {} was predicted before: {}", candidate, proven.refused);
  const Operations operations = expand(refit, proven.plan);
  const sim::Simulator simulator(refit, operations);
  const Calibration& calibration = candidates.calibrations[chosen.calibration];
  SweepDetail detail;
  const LowerBound bound = lower_bound(refit);
  detail.bound = bound.time;
  const sim::Prediction prediction = simulator.run(calibration);
  detail.binding = prediction.binding_resource;
  for (const Calibration& end : interval_calibrations(calibration)) {
    const bool moved = !(end == calibration);
    detail.ends.push_back(moved ? simulator.run(end).time : prediction.time);
  }
  return detail;
}

}  // namespace isthmus::report
