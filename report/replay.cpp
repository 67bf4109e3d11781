#include "report/replay.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/gpu_schedule.hpp"
#include "hw/program.hpp"
#include "model/error.hpp"
#include "planner/policy.hpp"
#include "report/gpu_prediction.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

Replay begin_replay(const Refit& refit, const ReplaySettings& settings) {
  Replay replay;
  replay.scenario = refit.name;
  if (settings.calibration) replay.calibration = settings.calibration->name;
  replay.share = settings.share;
  replay.payload = refit.payload();
  replay.ranks = refit.members();
  replay.relay_ranks = refit.relay_ranks;
  replay.tensors = refit.tensors.size();
  return replay;
}

double predict(const Refit& refit, const hw::Program& program, const hw::Measurement& measurement,
               const Calibration& calibration) {
  const std::uint32_t gpus = measurement.gpus;
  if (gpus == 0) return seconds(sim::simulate(refit, program.operations(), calibration).time);
  const ReplayConstants& constants = replay_constants(calibration, {refit.name, 0, "calibration"});
  const hw::GpuSchedule schedule = hw::make_schedule(program, gpus);
  return seconds(predict_on_gpus(schedule, measurement.graph ? without_host(constants) : constants).end);
}

ReplayRow run_plan(const Refit& refit, const Plan& plan, hw::Executor& executor,
                   const ReplaySettings& settings) {
  ReplayRow row;
  row.policy = plan.policy;
  Proof proof = check(refit, plan);
  if (!proof.proven()) {
    row.violations = std::move(proof.violations);
    return row;
  }
  const hw::Program program(refit, plan);
  row.operations = program.operations().list.size();
  row.measurement = executor.run(program, settings.options);
  if (settings.calibration)
    row.predicted_seconds = predict(refit, program, *row.measurement, *settings.calibration);
  return row;
}

}  // namespace

std::optional<double> ReplayRow::error() const {
  if (!measurement || !predicted_seconds || *predicted_seconds <= 0) return std::nullopt;
  return seconds(measurement->fastest()) / *predicted_seconds - 1;
}

bool Replay::byte_exact() const {
  return std::all_of(policies.begin(), policies.end(), [](const ReplayRow& row) {
    return !row.refused.empty() || (row.measurement && row.measurement->byte_exact());
  });
}

bool Replay::within(double tolerance) const {
  return std::all_of(policies.begin(), policies.end(), [tolerance](const ReplayRow& row) {
    const std::optional<double> error = row.error();
    return !error || std::abs(*error) <= tolerance;
  });
}

Replay replay(const Refit& refit, const std::vector<std::string>& names, hw::Executor& executor,
              const ReplaySettings& settings) {
  Replay result = begin_replay(refit, settings);
  std::string refusals;
  for (const std::string& name : names) {
    const PlanResult made = find_policy(name)->make(refit);
    if (const Refused* refused = std::get_if<Refused>(&made)) {
      result.policies.push_back({name, refused->reason});
      refusals += fmt::format("{}{}: refused: {}", refusals.empty() ? "" : "; ", name, refused->reason);
      continue;
    }
    result.policies.push_back(run_plan(refit, std::get<Plan>(made), executor, settings));
    result.policies.back().policy = name;
  }
  const bool any = std::any_of(result.policies.begin(), result.policies.end(),
                               [](const ReplayRow& row) { return row.refused.empty(); });
  if (!any) throw InputError({refit.name, 0, ""}, refusals);
  return result;
}

Replay replay_plan(const Refit& refit, const Plan& plan, hw::Executor& executor,
                   const ReplaySettings& settings) {
  Replay result = begin_replay(refit, settings);
  result.policies.push_back(run_plan(refit, plan, executor, settings));
  return result;
}

}  // namespace isthmus::report
