// isthmus explain: why a refit takes as long as it does, and what single changes would do.

#include "report/explain.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/input.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/text.hpp"
#include "planner/policy.hpp"
#include "report/comparison.hpp"
#include "report/page.hpp"
#include "report/page_data.hpp"
#include "report/sweep_crew.hpp"

namespace isthmus::cli {
namespace {

/// The page of the policy that is explained, with the other ones beside it.
void write_page(const ExplainOptions& options, const AssumedScenario& read,
                const report::Explanation& explained) {
  const Scenario& scenario = read.scenario;
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = resolve(scenario);
  const report::Comparison comparison = report::compare(refit, scenario.published, calibration,
                                                        chosen_policies({}, sources_quantise(scenario)));
  const auto shows = [&](const report::PolicyRow& row) {
    return row.policy == explained.policy && row.predicted();
  };
  if (std::none_of(comparison.policies.begin(), comparison.policies.end(), shows)) {
    fmt::print(stderr, "isthmus: {} does not end under the scenario's faults; --report {} is not written\n",
               explained.policy, printable(*options.report));
    return;
  }
  const std::string data =
      report::page_data(refit, *find_policy(explained.policy), calibration, read.assumptions);
  const report::PageTexts texts{scenario.name, to_table(comparison),
                                report::with_page_data(to_json(comparison), data),
                                report::explanation_document(explained, true)};
  write_output(*options.report, report::page_document(texts, report::page_assets()));
}

}  // namespace

int explain(const ExplainOptions& options) {
  const std::string policy = options.policy ? chosen_policies({*options.policy}).front() : "";
  require_file("--report", options.report);
  const AssumedScenario given =
      read_with_assumptions(options.scenario, options.overrides, options.model);  // says what it assumes
  const report::ReadScenario read = [&](const std::vector<Override>& settings) {
    if (settings.empty()) return given.scenario;
    std::vector<Override> all = parse_overrides(options.overrides);
    all.insert(all.end(), settings.begin(), settings.end());
    Input input = read_input(options.scenario, all, options.model);
    require_scenario(input);
    return std::move(input.scenario);
  };
  const std::size_t threads = options.threads.value_or(report::all_cores());
  const report::Explanation explained = report::explain(read, policy, threads);
  if (options.report) write_page(options, given, explained);
  print(report::explanation_document(explained, options.json));
  return 0;
}

}  // namespace isthmus::cli
