#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "planner/policy.hpp"

namespace isthmus::cli {
namespace {

constexpr const char* exit_statuses =
    "Exit status: 0 done; 1 a verdict against the input (violation found, slower than --max-seconds); 2 bad "
    "input, "
    "unsupported layout or usage; 3 the system failed.";

std::string policy_names() {
  std::string names;
  for (const Policy& policy : policies())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", policy.name);
  return names;
}

void add_scenario(CLI::App& command, std::string& scenario, std::vector<std::string>& overrides, bool& json) {
  command.add_option("scenario", scenario, "Scenario file (YAML; docs/scenario.md)")->required();
  command.add_option("--set", overrides, "Replace a value of the scenario: --set refit.streams=16")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  command.add_flag("--json", json, "Print JSON (docs/json.md) and nothing else");
}

void add_policy(CLI::App& command, std::vector<std::string>& chosen) {
  command
      .add_option("--policy", chosen,
                  fmt::format("Policies, separated by commas, or all: {}", policy_names()))
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("Plans, proves and predicts the movement of a model's weights between two GPU meshes.",
               "isthmus");
  app.footer(exit_statuses);
  app.require_subcommand(1);

  SimulateOptions simulate_options;
  CLI::App* simulate_command =
      app.add_subcommand("simulate", "Plan, prove and predict a refit; one row per policy");
  add_scenario(*simulate_command, simulate_options.scenario, simulate_options.overrides,
               simulate_options.json);
  add_policy(*simulate_command, simulate_options.policies);
  simulate_command
      ->add_option("--max-seconds", simulate_options.max_seconds,
                   "Gate: exit status 1, naming what binds, when no policy is that fast")
      ->check(CLI::PositiveNumber);

  ScenarioOptions bound_options, verify_options;
  CLI::App* bound_command =
      app.add_subcommand("bound", "Lower bound on the time of any plan, and the cut that gives it");
  add_scenario(*bound_command, bound_options.scenario, bound_options.overrides, bound_options.json);
  CLI::App* verify_command =
      app.add_subcommand("verify", "Prove the plans of a scenario, or show what is wrong");
  add_scenario(*verify_command, verify_options.scenario, verify_options.overrides, verify_options.json);
  add_policy(*verify_command, verify_options.policies);

  InventoryOptions inventory_options;
  CLI::App* inventory_command = app.add_subcommand("inventory", "The tensors of a model and their totals");
  inventory_command->add_option("config", inventory_options.config, "HuggingFace config.json")->required();
  inventory_command->add_flag("--tensors", inventory_options.tensors,
                              "Every name pattern, not only the totals");
  inventory_command->add_flag("--json", inventory_options.json, "Print JSON (docs/json.md) and nothing else");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);  // prints help or the message
    return status == 0 ? 0 : 2;
  }
  if (simulate_command->parsed()) return simulate(simulate_options);
  if (bound_command->parsed()) return bound(bound_options);
  if (verify_command->parsed()) return verify(verify_options);
  return inventory(inventory_options);
}

}  // namespace isthmus::cli
