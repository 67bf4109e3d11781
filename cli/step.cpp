// isthmus step: the RL step around a refit, policy by policy.

#include "report/step.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/input.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/scenario_step.hpp"
#include "model/text.hpp"

namespace isthmus::cli {

int step(const StepOptions& options) {
  chosen_policies(options.policies);  // a wrong name is said before anything is read
  const std::vector<Override> overrides = parse_overrides(options.overrides);
  const Input input = read_input(options.scenario, overrides, options.model);
  std::optional<StepSpec> spec;
  if (input.kind == InputKind::scenario) spec = find_step(options.scenario, overrides);
  if (!spec) {
    throw InputError({printable(options.scenario, 4096), 0, "step"}, "no such key",
                     "a scenario of a whole refit with step (docs/step.md)");
  }
  Scenario scenario = input.scenario;
  quantise_where_asked(options.policies, scenario);
  const std::vector<std::string> names = chosen_policies(options.policies, sources_quantise(scenario));
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = resolve(scenario);
  try {
    const report::StepReport report =
        report::judge_step(refit, calibration, scenario, *spec, names, options.budgets);
    print(options.json ? report::to_json(report) : report::to_text(report));
  } catch (const InputError& error) {
    if (!error.where().file.empty()) throw;
    throw InputError(scenario.at(error.where().key), error.found(),
                     error.allowed());  // the file has the place
  }
  return 0;
}

}  // namespace isthmus::cli
