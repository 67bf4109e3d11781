#include "cli/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/checkpoint.hpp"
#include "model/input.hpp"
#include "model/precision.hpp"
#include "model/refit.hpp"
#include "model/stored_form.hpp"
#include "model/text.hpp"
#include "model/validation.hpp"
#include "planner/certified_bound.hpp"
#include "planner/policies/local_puts.hpp"
#include "planner/policy.hpp"
#include "report/comparison.hpp"
#include "report/documents.hpp"
#include "report/inventory.hpp"
#include "report/page.hpp"
#include "report/page_data.hpp"
#include "report/plot.hpp"
#include "report/text.hpp"
#include "report/trace.hpp"
#include "report/traffic.hpp"
#include "report/validation.hpp"

namespace isthmus::cli {
namespace {

/// 0, or 1 with the reason on standard error when no policy meets the gate.
int apply_gate(const report::Comparison& comparison, double max_seconds) {
  const report::PolicyRow* best = comparison.fastest();
  if (best != nullptr && best->seconds <= max_seconds) return 0;
  if (best == nullptr) {
    fmt::print(stderr, "isthmus: no policy could be predicted; --max-seconds {} is not met\n", max_seconds);
  } else {
    fmt::print(stderr,
               "isthmus: the fastest policy, {}, needs {:.3f} s; --max-seconds allows {}; what binds: {}\n",
               best->policy, best->seconds, max_seconds, best->binding_resource);
  }
  return 1;
}

int simulate_traffic(const Scenario& scenario, const SimulateOptions& options) {
  constexpr std::string_view allowed =
      "none of --policy, --max-seconds, --trace, --links, --report, --plot with traffic";
  if (!options.policies.empty())
    throw InputError({"--policy", 0, ""}, "policies beside plain traffic, which has no plan", allowed);
  if (options.max_seconds)
    throw InputError({"--max-seconds", 0, ""}, "a gate for policies beside plain traffic", allowed);
  for (const auto& [given, name] :
       {std::pair{options.trace.has_value(), "--trace"}, std::pair{options.links, "--links"},
        std::pair{options.report.has_value(), "--report"}, std::pair{options.plot.has_value(), "--plot"}}) {
    if (given) throw InputError({name, 0, ""}, "beside plain traffic, which has no plan", allowed);
  }
  const report::TrafficComparison comparison = report::compare_traffic(scenario);
  print(options.json ? report::to_json(comparison) : report::to_text(comparison));
  return 0;
}

/// The timeline of the fastest policy.
void trace(const Refit& refit, const report::Comparison& comparison, const Calibration& calibration,
           const SimulateOptions& options) {
  const report::PolicyRow* best = comparison.fastest();
  if (best == nullptr) {
    fmt::print(stderr, "isthmus: no policy could be predicted; --trace {} is not written\n",
               printable(*options.trace));
    return;
  }
  const PlanResult made = plan_under(*find_policy(best->policy), refit, calibration);
  report::TraceSummary summary;
  write_pieces(*options.trace, [&](const report::TraceSink& write) {
    summary = report::trace_prediction(refit, std::get<Plan>(made), calibration, options.trace_limit, write);
  });
  tell_dropped(*options.trace, summary);
}

/// Predictions need the calibration; the rules about layouts do not.
void judge_calibration(const Scenario& scenario, Validation& result) {
  try {
    read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  } catch (const InputError& error) {
    result.violations.push_back(as_fault(error, "one of these"));
  }
}

}  // namespace

void tell_dropped(const std::string& file, const report::TraceSummary& summary) {
  if (summary.dropped_operations > 0) {
    fmt::print(stderr, "isthmus: {}: {} operations; {} shorter ones, of {}, are left out (--trace-limit)\n",
               printable(file), summary.operations, summary.dropped_operations,
               report::size_text(summary.dropped_bytes));
  }
}

void require_file(const char* option, const std::optional<std::string>& file) {
  if (file && (*file == "-" || file->empty()))
    throw InputError({option, 0, ""}, fmt::format("'{}'", *file), "the name of a file");
}

std::vector<std::string> chosen_policies(const std::vector<std::string>& names, bool quantised) {
  std::vector<std::string> chosen;
  std::string known;
  for (const std::string& name : listed_policies(true)) known += fmt::format("{}, ", name);
  for (const std::string& name : names) {
    if (name == "all") continue;
    if (find_policy(name) == nullptr)
      throw InputError({"--policy", 0, ""}, fmt::format("'{}'", printable(name)), known + "all");
    chosen.push_back(name);
  }
  const bool all = names.empty() || chosen.size() < names.size();
  return all ? listed_policies(quantised) : chosen;
}

void quantise_where_asked(const std::vector<std::string>& names, Scenario& scenario) {
  const bool only = names.size() == 1 && names.front() == balanced_quantized;
  if (only && report::lists_quantised(scenario)) scenario.refit.quantise_at = QuantiseAt::source;
}

namespace {

/// What `balanced-quantized` plans, where it is among the names and the scenario itself sends BF16.
std::optional<report::SourceVariant> variant_of(const Scenario& scenario,
                                                const std::vector<std::string>& names) {
  const bool named = std::find(names.begin(), names.end(), balanced_quantized) != names.end();
  const bool beside = scenario.refit.quantise_at == QuantiseAt::target && report::lists_quantised(scenario);
  if (!named || !beside) return std::nullopt;
  return report::source_variant(scenario);
}

}  // namespace

int simulate(const SimulateOptions& options) {
  chosen_policies(options.policies);  // a wrong name is said before anything is read
  require_file("--report", options.report);
  require_file("--plot", options.plot);
  const AssumedScenario read = read_with_assumptions(options.scenario, options.overrides, options.model);
  const Scenario& scenario = read.scenario;
  if (scenario.traffic) return simulate_traffic(scenario, options);
  if (options.links && !options.json)
    throw InputError({"--links", 0, ""}, "without --json", "--links --json: series are no table");
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = resolve(scenario);
  const std::vector<std::string> names = chosen_policies(options.policies, report::lists_quantised(scenario));
  const std::optional<report::SourceVariant> variant = variant_of(scenario, names);
  const report::Comparison comparison =
      report::compare(refit, scenario.published, calibration, names,
                      options.links ? report::default_link_steps : 0, variant ? &*variant : nullptr);
  const report::PolicyRow* const best = comparison.fastest();
  const Refit& best_refit = best != nullptr && best->quantised ? *variant->refit : refit;
  std::string json = options.json || options.report ? to_json(comparison) : "";
  if (options.report) {
    if (best != nullptr) {
      json = report::with_page_data(
          json, report::page_data(best_refit, *find_policy(best->policy), calibration, read.assumptions));
      write_output(*options.report,
                   page_document({scenario.name, to_table(comparison), json, ""}, report::page_assets()));
    } else {
      fmt::print(stderr, "isthmus: no policy could be predicted; --report {} is not written\n",
                 printable(*options.report));
    }
  }
  if (options.plot) write_output(*options.plot, report::plot(comparison));
  print(options.json ? json : to_table(comparison));
  if (options.trace) trace(best_refit, comparison, calibration, options);
  for (const report::PolicyRow& row : comparison.policies) {
    if (row.refused.empty() && !row.proven) return 1;
  }
  return options.max_seconds ? apply_gate(comparison, *options.max_seconds) : 0;
}

int bound(const BoundOptions& options) {
  const Refit refit = resolve(read_any(options.scenario, options.overrides, options.model));
  const CertifiedBound certified = certified_bound(refit);
  if (options.certificate) write_output(*options.certificate, report::certificate_document(refit, certified));
  if (options.certificate != "-") print(report::bound_document(refit, certified, options.json));
  return 0;
}

int verify(const VerifyOptions& options) {
  if (const std::optional<PlanFile> file = find_plan(options.scenario)) return verify_plan(*file, options);
  if (options.against)
    throw InputError({"--against", 0, ""}, "beside a scenario", "a plan file, to be proven for a scenario");
  chosen_policies(options.policies);
  const Scenario scenario = read_any(options.scenario, options.overrides, options.model);
  const std::vector<std::string> names = chosen_policies(options.policies, report::lists_quantised(scenario));
  const Refit refit = resolve(scenario);
  const std::optional<report::SourceVariant> variant = variant_of(scenario, names);
  const report::Verdicts verdicts = report::verify(refit, names, variant ? &*variant : nullptr);
  print(report::verdict_document(refit, verdicts, options.json));
  return verdicts.all_proven() ? 0 : 1;
}

int validate(const ValidateOptions& options) {
  RuleSet rules = RuleSet::general;
  if (options.rules) {
    const std::optional<RuleSet> named = parse_rule_set(*options.rules);
    if (!named) throw InputError({"--as", 0, ""}, fmt::format("'{}'", *options.rules), "nemo-rl, m2n");
    rules = *named;
  }
  const Input input =
      read_input(options.scenario, parse_overrides(options.overrides), options.model, options.local_maps);
  Validation result = isthmus::validate(input, rules);
  if (input.has_model && input.has_layout) judge_calibration(input.scenario, result);
  print(report::validation_document(input.scenario.name, result, options.json));
  return result.valid() ? 0 : 1;
}

int inventory(const InventoryOptions& options) {
  const Inventory inventory = read_inventory(options.config);
  const report::InventoryView view{
      options.dtype, {options.mtp, options.vision}, options.tensors, options.json};
  if (options.dtype == "stored") {
    print(report::inventory_document(as_stored(inventory, read_stored_form(options.config)), view));
    return 0;
  }
  const std::optional<WirePrecision> precision = parse_wire_precision(options.dtype);
  if (!precision) {
    throw InputError({"--dtype", 0, ""}, fmt::format("'{}'", printable(options.dtype)),
                     fmt::format("{}, or stored", wire_precision_form));
  }
  print(report::inventory_document(in_precision(inventory, *precision), view));
  return 0;
}

}  // namespace isthmus::cli
