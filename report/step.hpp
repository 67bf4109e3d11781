#pragma once
// The RL step around a refit, policy by policy (docs/step.md): what refits take (report/refit_cost.hpp), run
// through the pipeline of rollout, training and refit (sim/pipeline.hpp) over `steps` steps, of which the
// last half is looked at. Of that window, per step:
//   step            time / steps
//   shares          of a side's time: parts of PipelineTimes; all of a side's add up to 1
//   lost            drain + slowed + stopped, and refits that generators stood still for; x tokens per
//                   second: tokens
//   least interval  what one refit keeps generators busy or the trainer from the next: pause + refit + load +
//                   cache. No schedule refreshes the policy more often
//   run             1,000 steps: hours, and hours x GPUs of both sides
// Invariant: rows differ in nothing but what they name.

#include <map>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "model/step.hpp"
#include "report/refit_cost.hpp"
#include "sim/pipeline.hpp"

namespace isthmus::report {

struct StepFigures {
  double step_seconds = 0;
  sim::PipelineTimes window;  // over all of its steps
  int window_steps = 0;
  double least_interval_seconds = 0;
  double lost_seconds = 0;                   // of all generators, per step
  double tokens_lost = 0;                    // per step; 0 where the scenario says no throughput
  std::map<std::int64_t, double> staleness;  // refits behind: share of tokens
  double hours = 0, gpu_hours = 0;           // of 1,000 steps

  // Shares of `all`: weights are being sent; the side's GPUs do nothing. Being held is idle, and so are tails
  // alone, with which few GPUs are at work.
  double refit_share() const;
  double train_idle_share() const;
  double generate_idle_share() const;
  double mean_staleness() const;
};

struct StepSchedules {
  StepSchedule schedule = StepSchedule::synchronous;
  bool unbounded = false;
  int staleness = 1;
  DuringRefit during = DuringRefit::drain;
};

struct StepPolicyRow {
  std::string policy, refused;
  RefitCost cost;
  StepFigures figures;
};

struct StepScheduleRow {
  StepSchedules schedule;
  StepFigures figures;
};

struct StepBudgetRow {
  int ctas = 0;  // 0: no SMs
  RefitCost cost;
  StepFigures figures;
};

struct StepReport {
  std::string scenario, calibration;
  StepSpec spec;
  StepTimes times;
  int train_gpus = 0, generate_gpus = 0;
  std::vector<StepPolicyRow> policies{};
  std::string best{};                        // of them, by step time; empty: none
  std::vector<StepScheduleRow> schedules{};  // of the best
  std::vector<StepBudgetRow> budgets{};      // likewise, refits beside decoding

  /// Of the refit: beside decoding with this budget, over the fastest alone of all budgets.
  double slowdown(const StepBudgetRow& row) const;
};

/// The scenario's schedule.
StepSchedules schedule_of(const StepSpec& spec);
/// Raises InputError (key step.steps) where the steps do not fit into 2^63 picoseconds.
StepFigures step_figures(const StepReport& report, const StepSchedules& schedule, const RefitCost& cost);

/// `policies` must be known; `budgets` are the numbers of CTAs to compare, 0 for a transport without SMs.
StepReport judge_step(const Refit& refit, const Calibration& calibration, const Scenario& scenario,
                      const StepSpec& spec, const std::vector<std::string>& policies,
                      const std::vector<int>& budgets);

std::string to_text(const StepReport& report);
/// The JSON of docs/json.md.
std::string to_json(const StepReport& report);

}  // namespace isthmus::report
