// isthmus plan, show, diff, and verify of plan files.

#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/json_file.hpp"
#include "model/json_tree.hpp"
#include "model/text.hpp"
#include "planner/plan_difference.hpp"
#include "planner/plan_file.hpp"
#include "planner/plan_identity.hpp"
#include "planner/policies/local_puts.hpp"
#include "planner/policy.hpp"
#include "report/documents.hpp"
#include "report/plan.hpp"

namespace isthmus::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TensorId find_tensor(const PlanFile& file, const std::string& name) {
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < file.refit.tensors.size(); ++i) {
    if (file.refit.tensors[i].tensor.name == name) return {i};
    names.push_back(file.refit.tensors[i].tensor.name);
  }
  names = closest_first(name, std::move(names));
  names.resize(std::min<std::size_t>(names.size(), 5));
  throw InputError({"--tensor", 0, ""}, fmt::format("'{}'", printable(name)),
                   fmt::format("a tensor of the plan, such as {}", fmt::join(names, ", ")));
}

}  // namespace

int plan(const PlanOptions& options) {
  const Policy* policy = find_policy(options.policy);
  if (policy == nullptr) {
    const std::vector<std::string> known = listed_policies(true);
    std::vector<std::string_view> names(known.begin(), known.end());
    throw InputError({"--policy", 0, ""}, fmt::format("'{}'", printable(options.policy)),
                     fmt::format("{}", fmt::join(closest_first(options.policy, std::move(names)), ", ")));
  }
  if (options.output == "-" && options.json)
    throw InputError({"--json", 0, ""}, "the plan itself goes to standard output", "-o FILE beside --json");
  Scenario scenario = read_any(options.scenario, options.overrides, options.model);
  quantise_where_asked({options.policy}, scenario);  // the file says what it is for
  const Refit refit = resolve(scenario);
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const auto start = std::chrono::steady_clock::now();
  const PlanResult result = plan_under(*policy, refit, calibration);
  if (const Refused* refused = std::get_if<Refused>(&result))
    throw InputError({options.scenario, 0, ""},
                     fmt::format("{}: refused: {}", policy->name, refused->reason));
  const Plan& made = std::get<Plan>(result);
  report::WrittenPlan written{options.output, 0, seconds_since(start), 0};
  const auto planned = std::chrono::steady_clock::now();
  const std::filesystem::path folder =
      options.output == "-" ? "" : std::filesystem::path(options.output).parent_path();
  const std::string text = to_json(seen_from(scenario, folder), refit, made);
  write_output(options.output, text);
  written.bytes = text.size();
  written.write_seconds = seconds_since(planned);
  if (options.output != "-") print(report::written_plan_document(refit, made, written, options.json));
  return 0;
}

std::optional<PlanFile> find_plan(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
  const std::string text = read_text(file, max_json_bytes);
  if (!is_plan_text(text)) return std::nullopt;
  return plan_from_json(text, file);
}

int verify_plan(const PlanFile& file, const VerifyOptions& options) {
  const auto refuse = [](const char* option, const char* allowed) {
    throw InputError({option, 0, ""}, "beside a plan file", allowed);
  };
  if (!options.policies.empty()) refuse("--policy", "a scenario, to be planned; a plan says what it is for");
  if (!options.against && (options.model || !options.overrides.empty()))
    refuse(options.model ? "--model" : "--set", "--against SCENARIO with it, or a scenario");
  report::Verdict verdict{file.plan.policy, "", {}};
  if (!options.against) {
    verdict.proof = check(file.refit, file.plan);
    const report::Verdicts verdicts{{std::move(verdict)}};
    print(report::verdict_document(file.refit, verdicts, options.json));
    return verdicts.all_proven() ? 0 : 1;
  }
  const Refit asked = resolve(read_any(*options.against, options.overrides, options.model));
  verdict.proof = check_against(file.refit, file.plan, asked);
  const report::Verdicts verdicts{{std::move(verdict)}};
  print(report::verdict_document(asked, verdicts, options.json));
  return verdicts.all_proven() ? 0 : 1;
}

int show_plan(const ShowPlanOptions& options) {
  const PlanFile file = read_plan(options.plan);
  report::PlanView view{{}, {}, options.json};
  if (options.tensor) view.tensor = find_tensor(file, *options.tensor);
  if (options.rank) {
    if (*options.rank < 0 || to_size(*options.rank) >= file.refit.ranks()) {
      throw InputError({"--rank", 0, ""}, fmt::format("{}", *options.rank),
                       fmt::format("a rank from 0 to {}", file.refit.ranks() - 1));
    }
    view.rank = Rank{static_cast<std::uint32_t>(*options.rank)};
  }
  print(report::plan_document(file, view));
  return 0;
}

int diff_plans(const DiffPlansOptions& options) {
  const PlanFile first = read_plan(options.first), second = read_plan(options.second);
  const PlanDifference difference = plan_difference(first, second);
  const report::ComparedPlans plans{options.first, options.second, first, second};
  print(report::plan_difference_document(plans, difference, options.json));
  return difference.equal() ? 0 : 1;
}

}  // namespace isthmus::cli
