#pragma once
// Options that several commands take, and those of the commands that judge, measure and compare
// (arguments.cpp has the others). Each function adds options to a command and binds them to a value of
// commands.hpp.
// Invariant: an option means the same wherever it stands.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"

namespace isthmus::cli {

/// What every command on a scenario takes.
template <class Options>
void add_scenario(CLI::App& command, Options& options, std::string_view or_else = "") {
  command
      .add_option(
          "scenario", options.scenario,
          fmt::format("Scenario (YAML; docs/scenario.md), NeMo RL recipe or refit description, or NCCL M2N "
                      "system configuration{}",
                      or_else))
      ->required();
  command.add_option("--model", options.model,
                     "The model's config.json; recipes and M2N configurations need it");
  command.add_option("--set", options.overrides, "Replace a value of the file: --set refit.streams=16")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  command.add_flag("--json", options.json, "Print JSON (docs/json.md) and nothing else");
}

/// "golden, gather-broadcast, ..."
std::string policy_names();
/// --policy, from the list of all.
void add_policy(CLI::App& command, std::vector<std::string>& chosen);

/// --trace and its limit.
template <class Options>
void add_trace(CLI::App& command, Options& options) {
  command
      .add_option("--trace", options.trace,
                  "Write the timeline of the fastest policy for Perfetto (docs/trace.md)")
      ->type_name("FILE");
  command
      .add_option("--trace-limit", options.trace_limit,
                  "Operations in it: the critical path, then the longest; default 100000")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("N");
}

/// --report.
void add_report(CLI::App& command, std::optional<std::string>& file);

CLI::App* add_fail(CLI::App& app, FailOptions& options);
CLI::App* add_membership(CLI::App& app, MembershipOptions& options);
CLI::App* add_replay(CLI::App& app, ReplayOptions& options);
CLI::App* add_calibrate(CLI::App& app, CalibrateOptions& options);
CLI::App* add_compare(CLI::App& app, CompareOptions& options);
CLI::App* add_explain(CLI::App& app, ExplainOptions& options);
CLI::App* add_step(CLI::App& app, StepOptions& options);
CLI::App* add_sweep(CLI::App& app, SweepOptions& options);
CLI::App* add_scoreboard(CLI::App& app, ScoreboardOptions& options);

}  // namespace isthmus::cli
