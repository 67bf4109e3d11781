// isthmus compare: a user's own run against the prediction.

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "model/refit_scale.hpp"
#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "report/gaps.hpp"

namespace isthmus::cli {
namespace {

/// Of the named policy, or of the one that the trace names.
Plan plan_of(const Refit& refit, const CompareOptions& options, const report::Observation& observation) {
  const std::string& name = options.policy ? *options.policy : observation.policy;
  if (name.empty())
    throw InputError({"--policy", 0, ""},
                     fmt::format("nothing, and a {} does not say which ran", to_string(observation.form)),
                     "the policy that ran");
  const std::string policy = chosen_policies({name}).front();
  PlanResult made = find_policy(policy)->make(refit);
  if (const Refused* refused = std::get_if<Refused>(&made))
    throw InputError({"--policy", 0, ""}, fmt::format("{}, which refuses: {}", policy, refused->reason),
                     "a policy that serves this refit");
  Plan plan = std::get<Plan>(std::move(made));
  ISTHMUS_ASSERT(check(refit, plan).proven(), "{} made a plan that is not proven", policy);
  return plan;
}

}  // namespace

int compare(const CompareOptions& options) {
  const Scenario scenario = read_any(options.scenario, options.overrides, options.model);
  if (scenario.traffic)
    throw InputError(scenario.at("traffic"), "plain traffic, which has no tensors", "a refit");
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = scale_refit(resolve(scenario), options.scale).refit;
  const report::Observation observation = report::read_observation(options.measured, refit);
  const Plan plan = plan_of(refit, options, observation);
  print(report::gap_document(
      report::find_gaps(refit, plan, calibration, observation, options.measured, options.gaps),
      options.json));
  return 0;
}

}  // namespace isthmus::cli
