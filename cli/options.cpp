// Options of the commands that judge, measure and compare.

#include "cli/options.hpp"

#include "hw/executor.hpp"
#include "model/disturbance.hpp"
#include "planner/policy.hpp"

namespace isthmus::cli {

std::string policy_names() { return fmt::format("{}", fmt::join(listed_policies(true), ", ")); }

void add_policy(CLI::App& command, std::vector<std::string>& chosen) {
  command
      .add_option("--policy", chosen,
                  fmt::format("Policies, separated by commas, or all: {}", policy_names()))
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
}

void add_report(CLI::App& command, std::optional<std::string>& file) {
  command
      .add_option(
          "--report", file,
          "Write an HTML page with tables and charts (docs/report.md); --json then prints its numbers")
      ->type_name("FILE.html");
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

CLI::App* add_membership(CLI::App& app, MembershipOptions& options) {
  CLI::App* command =
      app.add_subcommand("membership",
                         "What it takes until hosts have left or joined and the next refit is done "
                         "(docs/membership.md)");
  add_scenario(*command, options);
  add_policy(*command, options.policies);
  command->add_option("--leave", options.leave, "Hosts that leave: 3, 0-3 or 0-3,7")
      ->type_name("HOSTS")
      ->allow_extra_args(true);
  command
      ->add_option(
          "--join", options.join,
          "Hosts that join generation; train:HOSTS join training. Who leaves as well comes back empty")
      ->type_name("HOSTS")
      ->allow_extra_args(true);
  command
      ->add_option("--next-refit", options.next_refit,
                   "When the next weights are there, after the change; default 0 s")
      ->type_name("T");
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
  command->add_flag("--graph", options.graph,
                    "With --backend nccl: all launches as one CUDA graph, launched once a run; where that is "
                    "refused, one by one, with the reason");
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

CLI::App* add_compare(CLI::App& app, CompareOptions& options) {
  CLI::App* command = app.add_subcommand(
      "compare", "Hold a run of your own against the prediction: the largest gaps (docs/compare.md)");
  add_scenario(*command, options);
  command
      ->add_option("--measured", options.measured,
                   "The run: a table of stage, tensor, start and end; a trace of replay or of Kineto (JSON); "
                   "an SQLite export of Nsight Systems")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--policy", options.policy,
                   fmt::format("The one that ran, of {}; a trace of replay names it", policy_names()))
      ->type_name("NAME");
  command
      ->add_option("--scale", options.scale, "The run moved this share of the bytes, as replay --scale does")
      ->check(CLI::Range(1e-12, 1.0))
      ->type_name("F");
  command->add_option("--gaps", options.gaps, "How many are shown; default 3")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  return command;
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
  command
      ->add_option("--report", options.report,
                   "Write simulate's HTML page of the policy, with the single changes (docs/report.md)")
      ->type_name("FILE.html");
  return command;
}

CLI::App* add_step(CLI::App& app, StepOptions& options) {
  CLI::App* command = app.add_subcommand(
      "step", "The whole RL step around a refit: pace, idle GPUs, staleness, by policy (docs/step.md)");
  add_scenario(*command, options);
  add_policy(*command, options.policies);
  command
      ->add_option("--ctas", options.budgets,
                   "Budgets of CTAs per GPU to compare, separated by commas; 0: no SMs; default 4,8,16,32,0")
      ->check(CLI::Range(0, 1024))
      ->type_name("N,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->take_all();
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
  command->add_flag("--what-if", options.what_if,
                    "Also try what would help each row: settings, links, placements, policies (minutes)");
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
  command
      ->add_option("--plot", options.plot,
                   "Write predicted against published as SVG, for papers (docs/report.md)")
      ->type_name("FILE.svg")
      ->excludes(measured);
  return command;
}

}  // namespace isthmus::cli
