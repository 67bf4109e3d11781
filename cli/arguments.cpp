#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "hw/executor.hpp"
#include "model/disturbance.hpp"
#include "model/text.hpp"
#include "planner/policy.hpp"

namespace isthmus::cli {
namespace {

constexpr const char* exit_statuses =
    "Exit status: 0 done; 1 a verdict against the input (violation found, wrong bytes, slower than "
    "--max-seconds, outside --tolerance, plans or topologies differ); 2 bad input, "
    "unsupported layout or usage; 3 the system failed.";

std::string policy_names() {
  std::string names;
  for (const Policy& policy : policies())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", policy.name);
  return names;
}

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

void add_policy(CLI::App& command, std::vector<std::string>& chosen) {
  command
      .add_option("--policy", chosen,
                  fmt::format("Policies, separated by commas, or all: {}", policy_names()))
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
}

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

CLI::App* add_fail(CLI::App& app, FailOptions& options) {
  CLI::App* command =
      app.add_subcommand("fail",
                         "What a fault during a refit costs, what had arrived by then, and who may serve on "
                         "(docs/faults.md)");
  add_scenario(*command, options);
  add_policy(*command, options.policies);
  command->add_option("--at", options.at, "When it happens: 200 ms")->required()->type_name("T");
  command->add_option("--what", options.what, fmt::format("What fails: {}", fault_subject_form))
      ->required()
      ->type_name("PART");
  command->add_option("--change", options.change, "Share of its capacity that is left; default 0: it fails")
      ->type_name("SHARE");
  command->add_option("--recover", options.recover, "When it is whole again; default never")->type_name("T");
  command
      ->add_option("--failed-steps", options.rules,
                   "What becomes of failed steps, separated by commas: stop, retry, reroute; default all")
      ->type_name("RULE,...")
      ->delimiter(',');
  command
      ->add_option("--timeout", options.timeout,
                   "From the failure of a step until it is noticed; default the scenario's, 1 s")
      ->type_name("T");
  command->add_option("--failures-per-day", options.failures_per_day, "For the goodput of a month; default 1")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("N");
  command->add_option("--interval", options.interval, "From the end of a refit to the next; default 0 s")
      ->type_name("T");
  command->add_flag("--tensors", options.tensors, "With --json: what is missing, by rank and tensor");
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

CLI::App* add_replay(CLI::App& app, ReplayOptions& options) {
  CLI::App* command = app.add_subcommand(
      "replay", "Execute plans, measure them, and look at every byte that arrives (docs/replay.md)");
  add_scenario(*command, options, "; or a plan file (docs/plan-format.md)");
  add_policy(*command, options.policies);
  std::string names;
  for (const hw::Backend& backend : hw::backends()) {
    names += fmt::format("{}{} ({}{})", names.empty() ? "" : ", ", backend.name, backend.summary,
                         backend.make == nullptr ? "; not in this program" : "");
  }
  command->add_option("--backend", options.backend, fmt::format("What executes: {}; default host", names))
      ->type_name("NAME");
  command
      ->add_option("--scale", options.scale,
                   "Share of the bytes: fewer layers, then smaller dimensions, same layouts; default 1")
      ->check(CLI::Range(1e-12, 1.0))
      ->type_name("F");
  command->add_option("--repeat", options.repetitions, "Timed runs; the table has the fastest; default 1")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  command->add_option("--warm-up", options.warm_up, "Runs before them that are not timed; default 0")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N");
  command
      ->add_option("--deadline", options.deadline_seconds,
                   "Seconds that any single wait may take before all is stopped; default 30")
      ->check(CLI::Range(1e-3, 1e5))
      ->type_name("S");
  command->add_flag("!--no-verify", options.verify, "Do not look at the bytes");
  command->add_flag("--predict", options.predict, "Show what the scenario's calibration predicts beside");
  command
      ->add_option("--tolerance", options.tolerance,
                   "Gate: exit status 1 when a measured time is off its prediction by more than this share")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("F");
  command
      ->add_option("--record", options.record,
                   "Add a JSON line for each policy to this file (docs/replay.md), as isthmus scoreboard "
                   "--measured reads it")
      ->type_name("FILE");
  add_trace(*command, options);
  return command;
}

CLI::App* add_calibrate(CLI::App& app, CalibrateOptions& options) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure the GPUs at hand, or a network: messages, writes, copies (docs/calibration.md)");
  command
      ->add_option(
          "--backend", options.backend,
          "What measures: nccl (GPUs of this host), the default; mpi (first to last process, under mpirun)")
      ->type_name("NAME");
  command
      ->add_option("-o,--output", options.output,
                   "Calibration file to write, whole or not at all; - for standard output, then nothing else")
      ->type_name("FILE");
  command->add_option("--base", options.base, "Calibration that the rest is taken from; default h100-ib400")
      ->type_name("NAME|FILE");
  command
      ->add_option("--nvlink", options.nvlink,
                   "Nominal rate from one GPU to another; default 450 GB/s (H100)")
      ->type_name("RATE");
  command
      ->add_option("--nic", options.nic, "Nominal rate of a host's link, with --backend mpi; default 50 GB/s")
      ->type_name("RATE");
  command->add_flag("--json", options.json, "Print JSON lines, one a point, and nothing else");
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

CLI::App* add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* command = app.add_subcommand(
      "explain", "Why a refit takes as long as it does, and what single changes would do (docs/sweep.md)");
  add_scenario(*command, options);
  command
      ->add_option("--policy", options.policy, fmt::format("One of {}; default: the fastest", policy_names()))
      ->type_name("NAME");
  command->add_option("--threads", options.threads, "Threads; default: all cores")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  return command;
}

CLI::App* add_sweep(CLI::App& app, SweepOptions& options) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Enumerate layouts, predict those that may matter, rank by refit time (docs/sweep.md)");
  command->add_option("space", options.space, "What may vary (YAML; docs/sweep.md)")
      ->required()
      ->type_name("SPACE.yaml");
  command->add_option("--set", options.overrides, "Replace a value of the file: --set refit.streams=16")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  command
      ->add_option("--threads", options.threads, "Threads; default: all cores. Results do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  command
      ->add_option("--resume", options.resume,
                   "Keep what is finished in this folder, and take from it what an earlier run finished")
      ->type_name("DIR");
  command->add_option("--top", options.top, "How many of the best to show; default 10")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command->add_flag("!--no-prune", options.prune, "Predict every candidate, whatever its bound");
  CLI::Option* csv = command->add_flag("--csv", options.csv, "Print CSV, one line per candidate");
  command->add_flag("--json", options.json, "Print JSON lines (docs/sweep.md) and nothing else")
      ->excludes(csv);
  return command;
}

CLI::App* add_scoreboard(CLI::App& app, ScoreboardOptions& options) {
  CLI::App* command = app.add_subcommand(
      "scoreboard", "Every published refit, predicted: errors, shares, what binds (docs/scoreboard.md)");
  command
      ->add_option("folder", options.folder,
                   "Folder of scenarios; without it $ISTHMUS_SCENARIOS, else ./scenarios")
      ->type_name("FOLDER");
  CLI::Option* json =
      command->add_flag("--json", options.json, "Print JSON (docs/scoreboard.md) and nothing else");
  CLI::Option* markdown =
      command->add_flag("--markdown", options.markdown,
                        "Write accuracy.md and blind-predictions.md instead, and print their names");
  markdown->excludes(json);
  command
      ->add_option("-o,--output", options.output,
                   "With --markdown: the folder to write to (default: docs beside the folder of scenarios)")
      ->type_name("FOLDER")
      ->needs(markdown);
  CLI::Option* measured = command->add_option(
      "--measured", options.measured,
      "Only the replays of this file, measured on GPUs (isthmus replay --record), predicted anew");
  measured->type_name("FILE.jsonl")->excludes(markdown);
  command
      ->add_option("--calibration", options.calibration,
                   "Under which measured replays are predicted; default h200-nvlink")
      ->type_name("NAME|FILE")
      ->needs(measured);
  return command;
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
  SweepOptions sweep_options;
  const CLI::App* sweep_command = add_sweep(app, sweep_options);
  ScoreboardOptions scoreboard_options;
  const CLI::App* scoreboard_command = add_scoreboard(app, scoreboard_options);
  TopologyOptions topology_options;
  const TopologyCommands topology_commands = add_topology(app, topology_options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "isthmus: {}; see isthmus --help\n", printable(error.what(), 200));
    return 2;
  }
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
  if (sweep_command->parsed()) return sweep(sweep_options);
  if (validate_command->parsed()) return validate(validate_options);
  if (topology_commands.show->parsed()) return show_topology(topology_options);
  if (topology_commands.convert->parsed()) return convert_topology(topology_options);
  if (topology_commands.diff->parsed()) return diff_topologies(topology_options);
  return inventory(inventory_options);
}

}  // namespace isthmus::cli
