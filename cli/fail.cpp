#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/input_fault.hpp"
#include "model/quantity.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/text.hpp"
#include "report/failure.hpp"

namespace isthmus::cli {
namespace {

Duration time_of(std::string_view option, const std::string& text) {
  const std::optional<Duration> time = parse_duration(text);
  if (!time) throw InputError({std::string(option), 0, ""}, fmt::format("'{}'", printable(text)), time_form);
  return *time;
}

MachineFault fault_of(const FailOptions& options) {
  MachineFault fault;
  fault.at = time_of("--at", options.at);
  const auto subject = parse_fault_subject(options.what);
  if (!subject) {
    throw InputError({"--what", 0, ""}, fmt::format("'{}'", printable(options.what)), fault_subject_form);
  }
  fault.what = *subject;
  fault.share = options.change;
  const bool allowed = fault.share == 0 || (fault.share >= least_fault_share && fault.share <= 1);
  if (!allowed) {
    throw InputError({"--change", 0, ""}, fmt::format("{}", fault.share), "0 (failed), or 0.001 to 1");
  }
  if (options.recover) {
    fault.until = time_of("--recover", *options.recover);
    if (*fault.until <= fault.at) {
      throw InputError({"--recover", 0, ""}, printable(*options.recover), "a time after --at");
    }
  }
  return fault;
}

report::FailureQuestion question_of(const FailOptions& options) {
  report::FailureQuestion question;
  question.fault = fault_of(options);
  question.failures_per_day = options.failures_per_day;
  question.interval = time_of("--interval", options.interval);
  if (!options.rules.empty()) question.rules.clear();
  for (const std::string& name : options.rules) {
    const auto rule = parse_failed_steps(name);
    if (!rule) {
      throw InputError({"--failed-steps", 0, ""}, fmt::format("'{}'", printable(name)),
                       "stop, retry, reroute");
    }
    question.rules.push_back(*rule);
  }
  return question;
}

}  // namespace

int fail(const FailOptions& options) {
  chosen_policies(options.policies);  // a wrong name is said before anything is read
  const report::FailureQuestion question = question_of(options);
  if (options.tensors && !options.json) {
    throw InputError({"--tensors", 0, ""}, "without --json", "--tensors --json: the list is no table");
  }
  Scenario scenario = read_any(options.scenario, options.overrides, options.model);
  if (scenario.traffic) {
    throw InputError(scenario.at("traffic"), "plain traffic, which has no steps", "a refit");
  }
  quantise_where_asked(options.policies, scenario);
  const std::vector<std::string> names = chosen_policies(options.policies, sources_quantise(scenario));
  if (options.timeout) {
    scenario.disturbances.failed_steps.timeout = time_of("--timeout", *options.timeout);
    if (scenario.disturbances.failed_steps.timeout.value == 0) {
      throw InputError({"--timeout", 0, ""}, printable(*options.timeout), "a time above zero");
    }
  }
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = resolve(scenario);
  Scenario asked = scenario;
  asked.disturbances = {{}, {question.fault}, {}};
  for (const InputFault& wrong : disturbance_faults(asked, refit.fabric)) {
    throw InputError({"--what", 0, ""}, wrong.found, wrong.allowed);
  }
  const report::FailureReport report = report::judge_failure(refit, calibration, names, question);
  print(options.json ? report::to_json(report, refit, options.tensors) : report::to_text(report));
  return 0;
}

}  // namespace isthmus::cli
