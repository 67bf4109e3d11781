#include <functional>

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
  add_report(*command, options.report);
  command
      ->add_option("--plot", options.plot,
                   "Write the policies against the lower bound as SVG, for papers (docs/report.md)")
      ->type_name("FILE.svg");
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
  CLI::App *plan = nullptr, *show = nullptr, *diff = nullptr;
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

CLI::Option* add_source(CLI::App& command, const std::string& name, std::string& source) {
  return command
      .add_option(name, source,
                  "Topology file (docs/topology-files.md; JSON: docs/topology-json.md), scenario.yaml, or "
                  "PRESET[:HOSTS]")
      ->type_name("FILE|PRESET[:HOSTS]");
}

/// A source, or the machine at hand.
void add_machine(CLI::App& command, TopologyOptions& options) {
  add_source(command, "topology", options.source);
  command.add_flag("--probe", options.probe,
                   "In place of a source: this machine, as Linux and the driver see it");
  command
      .add_option("--root", options.root,
                  "With --probe: folder with another machine's sys and proc; default /, and NVML is asked")
      ->type_name("FOLDER");
}

struct TopologyCommands {
  CLI::App *show = nullptr, *convert = nullptr, *diff = nullptr;
};

TopologyCommands add_topology(CLI::App& app, TopologyOptions& options) {
  CLI::App* command = app.add_subcommand("topology", "Show, convert and compare machines (docs/topology.md)");
  command->require_subcommand(1);
  constexpr const char* json = "Print JSON (docs/json.md) and nothing else";
  CLI::App* show = command->add_subcommand("show", "What a machine has, what its GPUs get, what stands out");
  add_machine(*show, options);
  show->add_flag("--json", options.json, json);
  CLI::App* convert = command->add_subcommand("convert", "A machine in another file format");
  add_machine(*convert, options);
  convert->add_option("--to", options.format, "json; xml (NCCL's, one host); dot (Graphviz)")
      ->required()
      ->type_name("FORMAT");
  convert
      ->add_option("-o,--output", options.output, "File to write, whole or not at all; - for standard output")
      ->required()
      ->type_name("FILE");
  CLI::App* diff =
      command->add_subcommand("diff", "What differs between two machines; exit status 1 if anything does");
  add_source(*diff, "first", options.source)->required();
  add_source(*diff, "second", options.other)->required();
  diff->add_flag("--json", options.json, json);
  return {show, convert, diff};
}

CLI::App* add_bound(CLI::App& app, BoundOptions& options) {
  CLI::App* command = app.add_subcommand(
      "bound", "Lower bound on the time of any plan, what gives it, and its proof (docs/bound.md)");
  add_scenario(*command, options);
  command
      ->add_option("--certificate", options.certificate,
                   "Write what proves the bound, as JSON; -: to standard output, instead of the bound")
      ->type_name("FILE");
  return command;
}

/// The options of every command, and the command that the arguments chose.
class CommandLine {
 public:
  void add_all(CLI::App& app) {
    add(add_simulate(app, simulate_), simulate, simulate_);
    add(add_fail(app, fail_), fail, fail_);
    add(add_membership(app, membership_), membership, membership_);
    add(add_bound(app, bound_), bound, bound_);
    add(add_verify(app, verify_), verify, verify_);
    add(add_calibrate(app, calibrate_), calibrate, calibrate_);
    add(add_replay(app, replay_), replay, replay_);
    const PlanCommands plans = add_plan(app, plan_, show_, diff_);
    add(plans.plan, plan, plan_);
    add(plans.show, show_plan, show_);
    add(plans.diff, diff_plans, diff_);
    add(add_validate(app, validate_), validate, validate_);
    add(add_inventory(app, inventory_), inventory, inventory_);
    add(add_compare(app, compare_), compare, compare_);
    add(add_explain(app, explain_), explain, explain_);
    add(add_step(app, step_), step, step_);
    add(add_sweep(app, sweep_), sweep, sweep_);
    add(add_scoreboard(app, scoreboard_), scoreboard, scoreboard_);
    const TopologyCommands topologies = add_topology(app, topology_);
    add(topologies.show, show_topology, topology_);
    add(topologies.convert, convert_topology, topology_);
    add(topologies.diff, diff_topologies, topology_);
  }

  int run_chosen() const { return chosen_(); }

 private:
  template <class Options>
  void add(CLI::App* command, int (*run)(const Options&), const Options& options) {
    command->callback([this, run, &options] { chosen_ = [run, &options] { return run(options); }; });
  }

  SimulateOptions simulate_;
  FailOptions fail_;
  MembershipOptions membership_;
  BoundOptions bound_;
  VerifyOptions verify_;
  CalibrateOptions calibrate_;
  ReplayOptions replay_;
  PlanOptions plan_;
  ShowPlanOptions show_;
  DiffPlansOptions diff_;
  ValidateOptions validate_;
  InventoryOptions inventory_;
  CompareOptions compare_;
  ExplainOptions explain_;
  StepOptions step_;
  SweepOptions sweep_;
  ScoreboardOptions scoreboard_;
  TopologyOptions topology_;
  std::function<int()> chosen_;
};

}  // namespace

int run(int argc, char** argv) {
  CLI::App app(
      "Plans, proves, predicts and replays the movement of a model's weights between two GPU meshes.",
      "isthmus");
  app.footer(exit_statuses);
  app.require_subcommand(1);
  CommandLine commands;
  commands.add_all(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "isthmus: {}; see isthmus --help\n", printable(error.what(), 200));
    return 2;
  }
  return commands.run_chosen();
}

}  // namespace isthmus::cli
