// isthmus replay.

#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "hw/executor.hpp"
#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "model/refit_scale.hpp"
#include "model/text.hpp"
#include "planner/policy.hpp"
#include "report/gpu_prediction.hpp"
#include "report/measured.hpp"
#include "report/replay.hpp"
#include "report/trace.hpp"

namespace isthmus::cli {
namespace {

report::ReplaySettings settings_of(const ReplayOptions& options, const Scenario& scenario) {
  report::ReplaySettings settings;
  settings.options.warm_up = options.warm_up;
  settings.options.repetitions = options.repetitions;
  settings.options.verify = options.verify;
  settings.options.graph = options.graph;
  settings.options.deadline = {
      static_cast<std::int64_t>(options.deadline_seconds * static_cast<double>(picoseconds_per_second))};
  if (options.predict || options.tolerance) {
    settings.calibration =
        read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
    if (options.backend == "nccl")
      report::replay_constants(*settings.calibration, scenario.at("calibration"));
  }
  return settings;
}

/// The measured timeline of the fastest policy. `plan`: the only one, where there is one.
void trace(const Refit& refit, const report::Replay& replay, const Plan* plan, const ReplayOptions& options) {
  const report::ReplayRow* best = nullptr;
  for (const report::ReplayRow& row : replay.policies) {
    if (!row.measurement) continue;
    if (best == nullptr || row.measurement->fastest() < best->measurement->fastest()) best = &row;
  }
  if (best == nullptr) return;  // the verdict says why
  PlanResult made = Refused{};
  if (plan == nullptr) made = find_policy(best->policy)->make(refit);
  const Plan& traced = plan != nullptr ? *plan : std::get<Plan>(made);
  report::TraceSummary summary;
  write_pieces(*options.trace, [&](const report::TraceSink& write) {
    summary = report::trace_measurement(refit, traced, *best->measurement, options.trace_limit, write);
  });
  tell_dropped(*options.trace, summary);
}

/// A line for each policy that ran.
void record(const report::Replay& replay, const ReplayOptions& options) {
  std::string lines;
  for (const report::ReplayRow& row : replay.policies) {
    if (!row.measurement) continue;
    const hw::Measurement& measurement = *row.measurement;
    report::MeasuredRow line;
    line.scenario = options.scenario;
    line.overrides = options.overrides;
    line.scale = options.scale;
    line.policy = row.policy;
    line.backend = measurement.backend;
    line.device = measurement.device;
    line.date = today();
    line.gpus = measurement.gpus;
    line.ranks = static_cast<std::int64_t>(replay.ranks);
    line.launches = static_cast<std::int64_t>(measurement.launches);
    line.bytes = measurement.moved;
    line.byte_exact = measurement.byte_exact();
    line.median = seconds(measurement.median());
    line.fastest = seconds(measurement.fastest());
    line.slowest = seconds(*std::max_element(measurement.times.begin(), measurement.times.end()));
    line.graph = measurement.graph;
    line.repetitions = static_cast<std::int64_t>(measurement.times.size());
    lines += report::record_line(line);
  }
  append_lines(*options.record, lines);
}

/// Prints; 1 where bytes are wrong, a plan is not proven, or a prediction is too far off.
int conclude(const Refit& refit, const Plan* plan, const report::Replay& replay, const ReplayOptions& options,
             bool reports) {
  if (reports) print(report::replay_document(replay, options.json));
  if (options.record && reports) record(replay, options);
  if (options.trace && reports) trace(refit, replay, plan, options);
  if (options.verify && !replay.byte_exact()) return 1;
  if (!options.tolerance || replay.within(*options.tolerance)) return 0;
  if (reports) {
    fmt::print(stderr, "isthmus: a measured time is further from its prediction than --tolerance {} allows\n",
               *options.tolerance);
  }
  return 1;
}

int replay_plan(const PlanFile& file, hw::Executor& executor, const ReplayOptions& options) {
  const auto refuse = [](const char* option) {
    throw InputError({option, 0, ""}, "beside a plan file, which says itself what moves",
                     "a scenario, to be planned");
  };
  if (!options.policies.empty()) refuse("--policy");
  if (options.scale != 1) refuse("--scale");
  if (options.model) refuse("--model");
  if (options.record) refuse("--record");
  if (!options.overrides.empty()) refuse("--set");
  const report::ReplaySettings settings = settings_of(options, file.scenario);
  const report::Replay replay = report::replay_plan(file.refit, file.plan, executor, settings);
  return conclude(file.refit, &file.plan, replay, options, executor.reports());
}

}  // namespace

int replay(const ReplayOptions& options) {
  if (options.graph && options.backend != "nccl")
    throw InputError({"--graph", 0, ""}, fmt::format("--backend {} beside it", printable(options.backend)),
                     "--backend nccl");
  const std::unique_ptr<hw::Executor> executor = hw::make_executor(options.backend);
  if (const std::optional<PlanFile> file = find_plan(options.scenario))
    return replay_plan(*file, *executor, options);
  if (options.record && options.model)
    throw InputError({"--record", 0, ""}, "--model beside it, which a line does not hold",
                     "a scenario (YAML)");
  const std::vector<std::string> names = chosen_policies(options.policies);
  const Scenario scenario = read_any(options.scenario, options.overrides, options.model);
  report::ReplaySettings settings = settings_of(options, scenario);
  const ScaledRefit scaled = scale_refit(resolve(scenario), options.scale);
  settings.share = scaled.share;
  const report::Replay replay = report::replay(scaled.refit, names, *executor, settings);
  return conclude(scaled.refit, nullptr, replay, options, executor->reports());
}

}  // namespace isthmus::cli
