#include "report/step.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/policy.hpp"

namespace isthmus::report {
namespace {

constexpr double most_seconds = 9'000'000;  // below 2^63 picoseconds

sim::PipelineSpec pipeline_spec(const StepReport& report, const StepSchedules& schedule,
                                const RefitCost& cost) {
  const StepTimes& times = report.times;
  sim::PipelineSpec spec;
  spec.rollout = times.rollout;
  spec.tail = times.tail;
  spec.reward = times.reward;
  spec.train = times.train;
  spec.load = times.load;
  spec.pause = times.pause;
  spec.cache = times.cache;
  spec.refit = cost.alone;
  spec.loaded_refit = cost.beside;
  spec.decoding = cost.decoding;
  spec.staleness = schedule.staleness;
  if (schedule.schedule == StepSchedule::synchronous) {
    spec.staleness = 0;
  } else if (schedule.unbounded) {
    spec.staleness.reset();
  }
  spec.during = schedule.during;
  spec.kv_cache = report.spec.kv_cache;
  spec.steps = report.spec.steps;
  return spec;
}

void require_room(const StepReport& report, const RefitCost& cost) {
  const StepTimes& t = report.times;
  const double one = seconds(t.rollout) + seconds(t.tail) + seconds(t.reward) + seconds(t.train) +
                     seconds(t.load) + seconds(t.pause) + seconds(t.cache) +
                     std::max(seconds(cost.alone), seconds(cost.beside));
  if (one * (report.spec.steps + 1) <= most_seconds) return;
  throw InputError({{}, 0, "step.steps"}, fmt::format("{} steps of up to {:.4g} s", report.spec.steps, one),
                   fmt::format("at most {:.0f} s in all", most_seconds));
}

double share_of_step(const sim::PipelineTimes& window, Duration part) {
  return window.all.value > 0 ? seconds(part) / seconds(window.all) : 0;
}

/// Time that generators lost to one refit's being there.
Duration lost_time(const sim::PipelineTimes& window, DuringRefit during) {
  const bool stands = during != DuringRefit::generate;
  return window.drain + window.slowed + window.stopped + (stands ? window.generate_refit : Duration{});
}

Duration least_interval(const StepReport& report, const StepSchedules& schedule, const RefitCost& cost) {
  const StepTimes& times = report.times;
  const bool generates = schedule.during == DuringRefit::generate;
  const bool synchronous = schedule.schedule == StepSchedule::synchronous;
  const bool in_flight = !synchronous && schedule.during != DuringRefit::drain;
  const CacheRule rule = report.spec.kv_cache;
  const bool rebuilds = rule == CacheRule::flush || (rule == CacheRule::recompute && in_flight);
  const Duration refit =
      generates && !synchronous ? cost.beside : cost.alone + (generates ? Duration{} : times.pause);
  return refit + times.load + (rebuilds ? times.cache : Duration{});
}

std::vector<StepSchedules> schedules_to_compare() {
  std::vector<StepSchedules> result{{StepSchedule::synchronous, false, 1, DuringRefit::drain}};
  for (const int staleness : {1, 2, 4, 0}) {
    for (const DuringRefit during : {DuringRefit::drain, DuringRefit::stop, DuringRefit::generate}) {
      result.push_back({StepSchedule::asynchronous, staleness == 0, std::max(1, staleness), during});
    }
  }
  return result;
}

struct MeasuredPolicy {
  StepPolicyRow row;
  std::unique_ptr<const RefitCosts> costs;
};

MeasuredPolicy measure(const StepReport& report, const Refit& refit, const Calibration& calibration,
                       std::size_t engine_ranks, const Policy& policy) {
  MeasuredPolicy result;
  result.row.policy = policy.name;
  result.costs = std::make_unique<const RefitCosts>(refit, calibration, engine_ranks, policy);
  result.row.refused = result.costs->refused();
  if (!result.row.refused.empty()) return result;
  const bool beside = report.spec.during_refit == DuringRefit::generate;
  result.row.cost = result.costs->run(report.spec.decode, report.spec.ctas, beside);
  result.row.figures = step_figures(report, schedule_of(report.spec), result.row.cost);
  return result;
}

/// What other schedules and budgets would do with the best policy's plan.
void compare_best(StepReport& report, const MeasuredPolicy& best, const std::vector<int>& budgets) {
  report.best = best.row.policy;
  const RefitCost cost = report.spec.during_refit == DuringRefit::generate
                             ? best.row.cost
                             : best.costs->run(report.spec.decode, report.spec.ctas, true);
  for (const StepSchedules& schedule : schedules_to_compare()) {
    report.schedules.push_back({schedule, step_figures(report, schedule, cost)});
  }
  StepSchedules beside = schedule_of(report.spec);
  beside.schedule = StepSchedule::asynchronous;
  beside.during = DuringRefit::generate;
  for (const int ctas : budgets) {
    StepBudgetRow row;
    row.ctas = ctas;
    row.cost = best.costs->run(report.spec.decode, ctas, true);
    row.figures = step_figures(report, beside, row.cost);
    report.budgets.push_back(std::move(row));
  }
}

}  // namespace

double StepFigures::refit_share() const { return share_of_step(window, window.train_refit); }

double StepFigures::train_idle_share() const {
  return share_of_step(window, window.hold + window.train_idle);
}

double StepFigures::generate_idle_share() const {
  return share_of_step(window, window.tail + window.drain + window.generate_idle);
}

double StepReport::slowdown(const StepBudgetRow& row) const {
  Duration least = row.cost.alone;
  for (const StepBudgetRow& each : budgets) least = std::min(least, each.cost.alone);
  return least.value > 0 ? seconds(row.cost.beside) / seconds(least) : 1;
}

double StepFigures::mean_staleness() const {
  double mean = 0;
  for (const auto& [behind, share] : staleness) mean += static_cast<double>(behind) * share;
  return mean;
}

StepSchedules schedule_of(const StepSpec& spec) {
  return {spec.schedule, spec.unbounded, spec.staleness, spec.during_refit};
}

StepFigures step_figures(const StepReport& report, const StepSchedules& schedule, const RefitCost& cost) {
  require_room(report, cost);
  const sim::Pipeline pipeline = run_pipeline(pipeline_spec(report, schedule, cost));
  const std::size_t first = pipeline.steps.size() / 2 - 1;
  StepFigures figures;
  figures.window = pipeline.between(first);
  figures.window_steps = static_cast<int>(pipeline.steps.size() - 1 - first);
  figures.step_seconds = seconds(figures.window.all) / figures.window_steps;
  figures.least_interval_seconds = seconds(least_interval(report, schedule, cost));
  figures.lost_seconds = seconds(lost_time(figures.window, schedule.during)) / figures.window_steps;
  figures.tokens_lost = figures.lost_seconds * report.times.tokens_per_second;
  Int128 all = 0;
  std::map<std::int64_t, Int128> work;
  for (std::size_t s = first + 1; s < pipeline.staleness.size(); ++s) {
    for (const auto& [behind, share] : pipeline.staleness[s]) {
      work[behind] += share;
      all += share;
    }
  }
  for (const auto& [behind, share] : work) {
    figures.staleness[behind] = static_cast<double>(share) / static_cast<double>(all);
  }
  figures.hours = figures.step_seconds * 1000 / 3600;
  figures.gpu_hours = figures.hours * (report.train_gpus + report.generate_gpus);
  return figures;
}

StepReport judge_step(const Refit& refit, const Calibration& calibration, const Scenario& scenario,
                      const StepSpec& spec, const std::vector<std::string>& policies,
                      const std::vector<int>& budgets) {
  StepReport report{refit.name,           calibration.name,       spec, step_times(spec, scenario),
                    scenario.train->gpus, scenario.generate->gpus};
  const std::size_t engine_ranks = to_size(scenario.generate->tp) * to_size(scenario.generate->pp);
  std::vector<std::future<MeasuredPolicy>> running;
  for (const std::string& name : policies) {
    running.push_back(std::async(std::launch::async, [&, policy = find_policy(name)] {
      return measure(report, refit, calibration, engine_ranks, *policy);
    }));
  }
  std::vector<MeasuredPolicy> measured;
  for (std::future<MeasuredPolicy>& each : running) measured.push_back(each.get());
  const MeasuredPolicy* best = nullptr;
  for (const MeasuredPolicy& each : measured) {
    if (!each.row.refused.empty()) continue;
    if (best == nullptr || each.row.figures.window.all < best->row.figures.window.all) best = &each;
  }
  if (best != nullptr) compare_best(report, *best, budgets);
  for (MeasuredPolicy& each : measured) report.policies.push_back(std::move(each.row));
  return report;
}

}  // namespace isthmus::report
