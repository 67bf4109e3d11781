// isthmus explain: why a refit takes as long as it does, and what single changes would do.

#include "report/explain.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/input.hpp"
#include "report/sweep_crew.hpp"

namespace isthmus::cli {

int explain(const ExplainOptions& options) {
  const std::string policy = options.policy ? chosen_policies({*options.policy}).front() : "";
  Scenario scenario = read_any(options.scenario, options.overrides, options.model);  // says what it assumes
  const report::ReadScenario read = [&](const std::vector<Override>& settings) {
    if (settings.empty()) return scenario;
    std::vector<Override> all = parse_overrides(options.overrides);
    all.insert(all.end(), settings.begin(), settings.end());
    Input input = read_input(options.scenario, all, options.model);
    require_scenario(input);
    return std::move(input.scenario);
  };
  const std::size_t threads = options.threads.value_or(report::all_cores());
  print(report::explanation_document(report::explain(read, policy, threads), options.json));
  return 0;
}

}  // namespace isthmus::cli
