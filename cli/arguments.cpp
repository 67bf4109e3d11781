#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "model/text.hpp"

namespace isthmus::cli {
namespace {

constexpr const char* exit_statuses =
    "Exit status: 0 done; 1 a verdict against the input (violation found, wrong bytes, slower than "
    "--max-seconds, outside --tolerance, plans or topologies differ); 2 bad input, "
    "unsupported layout or usage; 3 the system failed.";

CLI::App* add_simulate(CLI::App& app, SimulateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "simulate", "Plan, prove and predict a refit, one row per policy; or predict plain traffic");
  add_scenario(*command, options);
  add_policy(*command, options.policies);
  command
      ->add_option("--max-seconds", options.max_seconds,
                   "Gate: exit status 1, naming what binds, when no policy is that fast")
      ->check([](const std::string& text) {
        const bool positive = text.find_first_of("123456789") != std::string::npos && text.front() != '-';
        return positive ? std::string() : "found " + text + "; allowed: a number of seconds above 0";
      });
  add_trace(*command, options);
  command->add_flag("--links", options.links,
                    "With --json: what links carry and which ranks are at work, over time (docs/json.md)");
  return command;
}

CLI::App* add_validate(CLI::App& app, ValidateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "validate",
      "List every violation of a scenario, recipe, configuration or refit description (docs/validate.md)");
  add_scenario(*command, options);
  command
      ->add_option("--as", options.rules,
                   "Also the rules of nemo-rl (reshard refit) or m2n (NCCL M2N's limits)")
      ->type_name("RULES");
  command
      ->add_option("--local-maps", options.local_maps,
                   "Local maps of a refit description: a file, or a folder of .json files")
      ->type_name("PATH");
  return command;
}

CLI::App* add_inventory(CLI::App& app, InventoryOptions& options) {
  CLI::App* command = app.add_subcommand("inventory", "The tensors of a model and their totals");
  command
      ->add_option("config", options.config,
                   "HuggingFace config.json, safetensors checkpoint (file or folder), or manifest")
      ->required();
  command
      ->add_option(
          "--dtype", options.dtype,
          "What the wire carries: bf16, fp8, fp8-bf16-attention, mxfp8; or stored, the checkpoint's own")
      ->type_name("DTYPE");
  command->add_flag("--mtp,!--no-mtp", options.mtp,
                    "Count multi-token-prediction layers into the payload (default: no)");
  command->add_flag("--vision,!--no-vision", options.vision,
                    "Count the vision tower into the payload (default: yes)");
  command->add_flag("--tensors", options.tensors, "Every tensor by its HuggingFace name");
  command->add_flag("--json", options.json, "Print JSON (docs/json.md) and nothing else");
  return command;
}

CLI::App* add_verify(CLI::App& app, VerifyOptions& options) {
  CLI::App* command =
      app.add_subcommand("verify", "Prove a plan file, or the plans of a scenario; or show what is wrong");
  add_scenario(*command, options, "; or a plan file (docs/plan-format.md)");
  add_policy(*command, options.policies);
  command
      ->add_option("--against", options.against,
                   "Prove the plan file for this scenario, in place of the one it was made for")
      ->type_name("SCENARIO");
  return command;
}

struct PlanCommands {
  const CLI::App *plan = nullptr, *show = nullptr, *diff = nullptr;
};

PlanCommands add_plan(CLI::App& app, PlanOptions& plan_options, ShowPlanOptions& show_options,
                      DiffPlansOptions& diff_options) {
  constexpr const char* json = "Print JSON (docs/json.md) and nothing else";
  CLI::App* plan = app.add_subcommand("plan", "Write the plan of one policy as a file (docs/plan-format.md)");
  add_scenario(*plan, plan_options);
  plan->add_option("--policy", plan_options.policy, fmt::format("One of {}", policy_names()))
      ->required()
      ->type_name("NAME");
  plan->add_option("-o,--output", plan_options.output,
                   "File to write, whole or not at all; - for standard output")
      ->required()
      ->type_name("FILE");
  CLI::App* show = app.add_subcommand(
      "show", "What a plan file holds; with --tensor or --rank the steps, in order and in words");
  show->add_option("plan", show_options.plan, "Plan file")->required()->type_name("PLAN");
  show->add_option("--rank", show_options.rank, "Steps that this rank takes part in")->type_name("R");
  show->add_option("--tensor", show_options.tensor, "Steps of this tensor")->type_name("NAME");
  show->add_flag("--json", show_options.json, json);
  CLI::App* diff =
      app.add_subcommand("diff", "What differs between two plan files; exit status 1 if anything does");
  diff->add_option("first", diff_options.first, "Plan file")->required()->type_name("PLAN");
  diff->add_option("second", diff_options.second, "Plan file")->required()->type_name("PLAN");
  diff->add_flag("--json", diff_options.json, json);
  return {plan, show, diff};
}

void add_source(CLI::App& command, const std::string& name, std::string& source) {
  command
      .add_option(name, source,
                  "Topology file (docs/topology-files.md; JSON: docs/topology-json.md), scenario.yaml, or "
                  "PRESET[:HOSTS]")
      ->required()
      ->type_name("FILE|PRESET[:HOSTS]");
}

struct TopologyCommands {
  const CLI::App *show = nullptr, *convert = nullptr, *diff = nullptr;
};

TopologyCommands add_topology(CLI::App& app, TopologyOptions& options) {
  CLI::App* command = app.add_subcommand("topology", "Show, convert and compare machines (docs/topology.md)");
  command->require_subcommand(1);
  constexpr const char* json = "Print JSON (docs/json.md) and nothing else";
  CLI::App* show = command->add_subcommand("show", "What a machine has, what its GPUs get, what stands out");
  add_source(*show, "topology", options.source);
  show->add_flag("--json", options.json, json);
  CLI::App* convert = command->add_subcommand("convert", "A machine in another file format");
  add_source(*convert, "topology", options.source);
  convert->add_option("--to", options.format, "json; xml (NCCL's, one host); dot (Graphviz)")
      ->required()
      ->type_name("FORMAT");
  convert
      ->add_option("-o,--output", options.output, "File to write, whole or not at all; - for standard output")
      ->required()
      ->type_name("FILE");
  CLI::App* diff =
      command->add_subcommand("diff", "What differs between two machines; exit status 1 if anything does");
  add_source(*diff, "first", options.source);
  add_source(*diff, "second", options.other);
  diff->add_flag("--json", options.json, json);
  return {show, convert, diff};
}

/// The exit status where there is nothing to run.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "isthmus: {}; see isthmus --help\n", printable(error.what(), 200));
    return 2;
  }
  return std::nullopt;
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app(
      "Plans, proves, predicts and replays the movement of a model's weights between two GPU meshes.",
      "isthmus");
  app.footer(exit_statuses);
  app.require_subcommand(1);

  SimulateOptions simulate_options;
  const CLI::App* simulate_command = add_simulate(app, simulate_options);
  FailOptions fail_options;
  const CLI::App* fail_command = add_fail(app, fail_options);
  BoundOptions bound_options;
  CLI::App* bound_command = app.add_subcommand(
      "bound", "Lower bound on the time of any plan, what gives it, and its proof (docs/bound.md)");
  add_scenario(*bound_command, bound_options);
  bound_command
      ->add_option("--certificate", bound_options.certificate,
                   "Write what proves the bound, as JSON; -: to standard output, instead of the bound")
      ->type_name("FILE");
  VerifyOptions verify_options;
  const CLI::App* verify_command = add_verify(app, verify_options);
  ReplayOptions replay_options;
  CalibrateOptions calibrate_options;
  const CLI::App* calibrate_command = add_calibrate(app, calibrate_options);
  const CLI::App* replay_command = add_replay(app, replay_options);
  PlanOptions plan_options;
  ShowPlanOptions show_options;
  DiffPlansOptions diff_options;
  const PlanCommands plan_commands = add_plan(app, plan_options, show_options, diff_options);

  ValidateOptions validate_options;
  const CLI::App* validate_command = add_validate(app, validate_options);
  InventoryOptions inventory_options;
  add_inventory(app, inventory_options);
  ExplainOptions explain_options;
  const CLI::App* explain_command = add_explain(app, explain_options);
  StepOptions step_options;
  const CLI::App* step_command = add_step(app, step_options);
  SweepOptions sweep_options;
  const CLI::App* sweep_command = add_sweep(app, sweep_options);
  ScoreboardOptions scoreboard_options;
  const CLI::App* scoreboard_command = add_scoreboard(app, scoreboard_options);
  TopologyOptions topology_options;
  const TopologyCommands topology_commands = add_topology(app, topology_options);

  if (const std::optional<int> status = parse(app, argc, argv)) return *status;
  if (simulate_command->parsed()) return simulate(simulate_options);
  if (fail_command->parsed()) return fail(fail_options);
  if (bound_command->parsed()) return bound(bound_options);
  if (verify_command->parsed()) return verify(verify_options);
  if (replay_command->parsed()) return replay(replay_options);
  if (calibrate_command->parsed()) return calibrate(calibrate_options);
  if (plan_commands.plan->parsed()) return plan(plan_options);
  if (plan_commands.show->parsed()) return show_plan(show_options);
  if (plan_commands.diff->parsed()) return diff_plans(diff_options);
  if (scoreboard_command->parsed()) return scoreboard(scoreboard_options);
  if (explain_command->parsed()) return explain(explain_options);
  if (step_command->parsed()) return step(step_options);
  if (sweep_command->parsed()) return sweep(sweep_options);
  if (validate_command->parsed()) return validate(validate_options);
  if (topology_commands.show->parsed()) return show_topology(topology_options);
  if (topology_commands.convert->parsed()) return convert_topology(topology_options);
  if (topology_commands.diff->parsed()) return diff_topologies(topology_options);
  return inventory(inventory_options);
}

}  // namespace isthmus::cli
