#include "report/step.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "model/scenario_step.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

Duration of_seconds(std::int64_t count) { return {count * picoseconds_per_second}; }

/// Phases of whole seconds; nothing is simulated.
StepReport any_step() {
  const auto time = [](std::int64_t least, std::int64_t most) {
    return of_seconds(*rc::gen::inRange<std::int64_t>(least, most + 1));
  };
  StepReport report;
  report.times = {
      time(1, 100), time(0, 30), time(0, 10), time(1, 100), time(0, 5), time(0, 5), time(0, 10), 0, 0};
  report.train_gpus = *rc::gen::inRange(1, 1000);
  report.generate_gpus = *rc::gen::inRange(1, 1000);
  report.spec.kv_cache = static_cast<CacheRule>(*rc::gen::inRange(0, 3));
  report.spec.steps = 40;
  return report;
}

StepSchedules any_schedule() {
  StepSchedules schedule;
  schedule.schedule = *rc::gen::arbitrary<bool>() ? StepSchedule::synchronous : StepSchedule::asynchronous;
  schedule.unbounded = *rc::gen::arbitrary<bool>();
  schedule.staleness = *rc::gen::inRange(1, 5);
  schedule.during = static_cast<DuringRefit>(*rc::gen::inRange(0, 3));
  return schedule;
}

RefitCost any_cost() {
  RefitCost cost;
  cost.alone = of_seconds(*rc::gen::inRange(0, 20));
  cost.beside = cost.alone + of_seconds(*rc::gen::inRange(0, 20));
  cost.decoding = *rc::gen::inRange<std::int64_t>(0, 1'000'000'001);
  return cost;
}

RC_GTEST_PROP(StepShards, of_each_side_add_up_to_the_step, ()) {
  const StepReport report = any_step();
  const StepFigures figures = step_figures(report, any_schedule(), any_cost());
  const sim::PipelineTimes& w = figures.window;
  RC_ASSERT(w.train + w.hold + w.train_refit + w.train_idle == w.all);
  RC_ASSERT(w.generate + w.tail + w.drain + w.slowed + w.generate_refit + w.stopped + w.generate_idle ==
            w.all);
  double shares = 0;
  for (const auto& [behind, share] : figures.staleness) shares += share;
  RC_ASSERT(std::abs(shares - 1) < 1e-9);
}

RC_GTEST_PROP(StepShards, of_a_run_are_gpus_times_hours, ()) {
  const StepReport report = any_step();
  const StepFigures figures = step_figures(report, any_schedule(), any_cost());
  RC_ASSERT(std::abs(figures.hours * 3.6 - figures.step_seconds) < 1e-9 * figures.step_seconds);
  const double gpus = report.train_gpus + report.generate_gpus;
  RC_ASSERT(std::abs(figures.gpu_hours - gpus * figures.hours) <= 1e-9 * figures.gpu_hours);
}

RC_GTEST_PROP(StepShards, are_alike_for_all_refits_that_take_no_time, ()) {
  const StepReport report = any_step();
  const StepSchedules schedule = any_schedule();
  RefitCost nothing = any_cost(), other = any_cost();
  nothing.alone = nothing.beside = other.alone = other.beside = {};
  RC_ASSERT(step_figures(report, schedule, nothing).window == step_figures(report, schedule, other).window);
}

RC_GTEST_PROP(StepShards, of_a_synchronous_step_are_the_sum_of_its_phases, ()) {
  const StepReport report = any_step();
  StepSchedules schedule = any_schedule();
  schedule.schedule = StepSchedule::synchronous;
  const RefitCost cost = any_cost();
  const StepTimes& t = report.times;
  const bool pauses = schedule.during != DuringRefit::generate;
  const bool flushes = report.spec.kv_cache == CacheRule::flush;
  const Duration sum = t.rollout + t.tail + t.reward + t.train + cost.alone + t.load +
                       (pauses ? t.pause : Duration{}) + (flushes ? t.cache : Duration{});
  RC_ASSERT(std::abs(step_figures(report, schedule, cost).step_seconds - seconds(sum)) < 1e-9);
}

RC_GTEST_PROP(StepShards, never_refresh_the_policy_more_often_than_refits_allow, ()) {
  const StepReport report = any_step();
  StepSchedules schedule = any_schedule();
  const RefitCost cost = any_cost();
  const StepFigures figures = step_figures(report, schedule, cost);
  if (schedule.during == DuringRefit::generate) return;  // a refit that meets no batch is one alone
  RC_ASSERT(figures.step_seconds >=
            figures.least_interval_seconds - 1e-9 -
                (report.spec.kv_cache == CacheRule::recompute ? seconds(report.times.cache) : 0));
}

TEST(Step, that_would_not_fit_into_the_clock_is_refused) {
  StepReport report;
  report.times.rollout = of_seconds(100'000);
  report.spec.steps = 1'000;
  try {
    step_figures(report, {}, {});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("step.steps: found 1000 steps of up to 1e+05 s"));
  }
}

/// A small refit, two policies.
StepReport judged(const std::string& step) {
  const std::string text =
      "name: small\n"
      "model: {config: models/qwen3-30b-a3b.json, layers: 1}\n"
      "fabric: {preset: dgx-h100, hosts: 2}\n"
      "train: {gpus: 8, ep: 8, etp: 1}\n"
      "generate: {gpus: 8, tp: 4}\n"
      "calibration: h100-ib400\n"
      "step: {rollout_time: 100 ms, train_time: 50 ms, " +
      step + "}\n";
  const auto file = project_folder() / "scenarios/small.yaml";
  const Scenario scenario = parse_scenario(text, file);
  const Calibration calibration = read_calibration("h100-ib400", file.parent_path());
  return judge_step(resolve(scenario), calibration, scenario, *parse_step(text, file),
                    {"striped", "gather-broadcast"}, {4, 0});
}

TEST(Step, compares_policies_by_what_their_refits_take) {
  const StepReport report = judged("schedule: synchronous");
  ASSERT_EQ(report.policies.size(), 2U);
  for (const StepPolicyRow& row : report.policies) {
    EXPECT_NEAR(row.figures.step_seconds, 0.15 + seconds(row.cost.alone), 1e-9) << row.policy;
  }
  const bool first = report.policies[0].cost.alone < report.policies[1].cost.alone;
  EXPECT_EQ(report.best, report.policies[first ? 0 : 1].policy);
  EXPECT_EQ(report.schedules.size(), 13U);
  ASSERT_EQ(report.budgets.size(), 2U);
  EXPECT_GE(report.budgets[0].cost.alone, report.budgets[1].cost.alone);
}

TEST(Step, says_on_the_terminal_what_it_says_in_json) {
  const StepReport report =
      judged("schedule: asynchronous, during_refit: generate, decode: {sm: 1, nvlink: 0.2}, ctas: 16");
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  const std::string text = to_text(report);
  EXPECT_THAT(text, ::testing::HasSubstr("asynchronous, staleness 1, generate"));
  EXPECT_EQ(json["policies"][0]["policy"], "striped");
  EXPECT_EQ(json["staleness"], 1);
  const double kept = json["policies"][0]["decoding_keeps"];
  EXPECT_NEAR(kept, 116 / 132.0, 1e-9);
  EXPECT_THAT(text, ::testing::HasSubstr("87.9 %"));
  EXPECT_GE(json["policies"][0]["refit_beside_decoding_seconds"], json["policies"][0]["refit_seconds"]);
  EXPECT_EQ(json["schedules"].size(), 13U);
  EXPECT_EQ(json["budgets"][1]["ctas"], 0);
  EXPECT_EQ(json["best"], report.best);
}

}  // namespace
}  // namespace isthmus::report
