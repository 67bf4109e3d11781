// The tables and the JSON of isthmus step.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/step.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using StepJson = nlohmann::ordered_json;

double share_in(const sim::PipelineTimes& window, Duration part) {
  return window.all.value > 0 ? seconds(part) / seconds(window.all) : 0;
}

std::string schedule_text(const StepSchedules& schedule) {
  if (schedule.schedule == StepSchedule::synchronous) return "synchronous";
  return fmt::format("asynchronous, staleness {}, {}",
                     schedule.unbounded ? "unbounded" : fmt::to_string(schedule.staleness),
                     to_string(schedule.during));
}

std::string staleness_text(const StepFigures& figures) {
  std::string text = fmt::format("{:.2f} (", figures.mean_staleness());
  std::size_t shown = 0;
  for (const auto& [behind, share] : figures.staleness) {
    if (++shown > 4) return text + ", ...)";
    text += fmt::format("{}{}: {:.0f} %", shown > 1 ? ", " : "", behind, 100 * share);
  }
  return text + ")";
}

const std::vector<std::string> figure_heads{
    "step",          "refit share", "idle, training", "idle, generation", "at most every",
    "lost per step", "hours",       "GPU-hours",      "refits behind"};

std::vector<std::string> figure_cells(const StepReport& report, const StepFigures& figures) {
  const std::string lost = report.times.tokens > 0 ? fmt::format("{:.0f} tokens", figures.tokens_lost)
                                                   : time_text(figures.lost_seconds);
  return {time_text(figures.step_seconds),
          percent(figures.refit_share()),
          percent(figures.train_idle_share()),
          percent(figures.generate_idle_share()),
          time_text(figures.least_interval_seconds),
          lost,
          fmt::format("{:.2f}", figures.hours),
          fmt::format("{:.0f}", figures.gpu_hours),
          staleness_text(figures)};
}

std::string table(std::vector<std::string> first_heads,
                  const std::vector<std::pair<std::vector<std::string>, const StepFigures*>>& rows,
                  const StepReport& report) {
  first_heads.insert(first_heads.end(), figure_heads.begin(), figure_heads.end());
  std::vector<std::vector<std::string>> cells{std::move(first_heads)};
  for (const auto& [first, figures] : rows) {
    cells.push_back(first);
    const std::vector<std::string> rest = figure_cells(report, *figures);
    cells.back().insert(cells.back().end(), rest.begin(), rest.end());
  }
  return columns_text(cells);
}

std::string phases_text(const StepReport& report) {
  const StepTimes& times = report.times;
  std::string text = fmt::format(
      "{}: {} training and {} generation GPUs, {}; calibration {}\nrollout {}, training {}", report.scenario,
      report.train_gpus, report.generate_gpus, schedule_text(schedule_of(report.spec)), report.calibration,
      time_text(seconds(times.rollout)), time_text(seconds(times.train)));
  const auto add = [&](std::string_view name, Duration time) {
    if (time.value > 0) text += fmt::format(", {} {}", name, time_text(seconds(time)));
  };
  add("tail", times.tail);
  add("reward", times.reward);
  add("load", times.load);
  add("pause", times.pause);
  add("cache", times.cache);
  if (times.tokens > 0) text += fmt::format("; {} tokens per step", times.tokens);
  return text + "\n";
}

std::string policies_text(const StepReport& report) {
  std::vector<std::pair<std::vector<std::string>, const StepFigures*>> rows;
  std::string refusals;
  const bool beside = report.spec.during_refit == DuringRefit::generate;
  for (const StepPolicyRow& row : report.policies) {
    if (!row.refused.empty()) {
      refusals += fmt::format("{}: refused: {}\n", row.policy, row.refused);
      continue;
    }
    std::vector<std::string> cells{row.policy, time_text(seconds(row.cost.alone)),
                                   time_text(seconds(row.cost.loading))};
    if (beside) {
      cells.push_back(time_text(seconds(row.cost.beside)));
      cells.push_back(percent(static_cast<double>(row.cost.decoding) * 1e-9));
    }
    rows.emplace_back(std::move(cells), &row.figures);
  }
  std::vector<std::string> heads{"policy", "refit", "of it load"};
  if (beside) heads.insert(heads.end(), {"beside decoding", "decoding keeps"});
  std::string text = "\n" + (rows.empty() ? std::string() : table(std::move(heads), rows, report));
  return refusals.empty() ? text : text + "\n" + refusals;
}

std::string schedules_text(const StepReport& report) {
  std::vector<std::pair<std::vector<std::string>, const StepFigures*>> rows;
  for (const StepScheduleRow& row : report.schedules) {
    rows.push_back({{schedule_text(row.schedule)}, &row.figures});
  }
  return fmt::format("\nother schedules, {}:\n", report.best) + table({"schedule"}, rows, report);
}

std::string budgets_text(const StepReport& report) {
  if (report.budgets.empty()) return "";
  std::vector<std::pair<std::vector<std::string>, const StepFigures*>> rows;
  for (const StepBudgetRow& row : report.budgets) {
    rows.push_back({{row.ctas > 0 ? fmt::to_string(row.ctas) : "no SMs", time_text(seconds(row.cost.alone)),
                     time_text(seconds(row.cost.beside)), fmt::format("{:.3f}", report.slowdown(row)),
                     percent(static_cast<double>(row.cost.decoding) * 1e-9)},
                    &row.figures});
  }
  return fmt::format("\nrefits while generating, {}, by CTAs that the transport has on each GPU:\n",
                     report.best) +
         table({"CTAs", "refit alone", "beside decoding", "slowdown", "decoding keeps"}, rows, report);
}

StepJson figures_json(const StepFigures& figures) {
  const sim::PipelineTimes& window = figures.window;
  StepJson behind = StepJson::array();
  for (const auto& [refits, share] : figures.staleness) {
    behind.push_back({{"refits_behind", refits}, {"share", share}});
  }
  const auto share = [&](Duration part) { return share_in(window, part); };
  return {{"step_seconds", figures.step_seconds},
          {"refit_share", figures.refit_share()},
          {"train_idle_share", figures.train_idle_share()},
          {"generate_idle_share", figures.generate_idle_share()},
          {"train_shares",
           {{"train", share(window.train)},
            {"hold", share(window.hold)},
            {"refit", share(window.train_refit)},
            {"idle", share(window.train_idle)}}},
          {"generate_shares",
           {{"rollout", share(window.generate)},
            {"tail", share(window.tail)},
            {"drain", share(window.drain)},
            {"slowed", share(window.slowed)},
            {"refit", share(window.generate_refit)},
            {"stopped", share(window.stopped)},
            {"idle", share(window.generate_idle)}}},
          {"refresh_interval_seconds", figures.step_seconds},
          {"least_refresh_interval_seconds", figures.least_interval_seconds},
          {"lost_seconds", figures.lost_seconds},
          {"tokens_lost", figures.tokens_lost},
          {"mean_staleness", figures.mean_staleness()},
          {"staleness", std::move(behind)},
          {"hours_per_1000_steps", figures.hours},
          {"gpu_hours_per_1000_steps", figures.gpu_hours}};
}

StepJson cost_json(const RefitCost& cost) {
  return {{"refit_seconds", seconds(cost.alone)},
          {"loading_seconds", seconds(cost.loading)},
          {"refit_beside_decoding_seconds", seconds(cost.beside)},
          {"decoding_keeps", static_cast<double>(cost.decoding) * 1e-9},
          {"binding_resource", cost.binding_alone},
          {"binding_resource_beside_decoding", cost.binding_beside}};
}

StepJson schedule_json(const StepSchedules& schedule) {
  const bool synchronous = schedule.schedule == StepSchedule::synchronous;
  StepJson staleness = schedule.staleness;
  if (synchronous) staleness = 0;
  if (!synchronous && schedule.unbounded) staleness = nullptr;
  return {{"schedule", synchronous ? "synchronous" : "asynchronous"},
          {"staleness", std::move(staleness)},
          {"during_refit", to_string(schedule.during)}};
}

StepJson phases_json(const StepReport& report) {
  const StepTimes& times = report.times;
  return {{"rollout_seconds", seconds(times.rollout)},   {"tail_seconds", seconds(times.tail)},
          {"reward_seconds", seconds(times.reward)},     {"train_seconds", seconds(times.train)},
          {"load_seconds", seconds(times.load)},         {"pause_seconds", seconds(times.pause)},
          {"cache_seconds", seconds(times.cache)},       {"tokens_per_step", times.tokens},
          {"tokens_per_second", times.tokens_per_second}};
}

}  // namespace

std::string to_text(const StepReport& report) {
  std::string text = phases_text(report) + policies_text(report);
  if (!report.best.empty()) text += schedules_text(report) + budgets_text(report);
  return text +
         "\nhours and GPU-hours: of 1,000 steps. At most every: no schedule of this kind refreshes the "
         "policy\n"
         "more often. Refits behind: mean over tokens, and shares of tokens. docs/step.md says what all "
         "is.\n";
}

std::string to_json(const StepReport& report) {
  StepJson policies = StepJson::array();
  for (const StepPolicyRow& row : report.policies) {
    if (!row.refused.empty()) {
      policies.push_back({{"policy", row.policy}, {"refused", row.refused}});
      continue;
    }
    StepJson json{{"policy", row.policy}};
    json.update(cost_json(row.cost));
    json.update(figures_json(row.figures));
    policies.push_back(std::move(json));
  }
  StepJson schedules = StepJson::array(), budgets = StepJson::array();
  for (const StepScheduleRow& row : report.schedules) {
    StepJson json = schedule_json(row.schedule);
    json.update(figures_json(row.figures));
    schedules.push_back(std::move(json));
  }
  for (const StepBudgetRow& row : report.budgets) {
    StepJson json{{"ctas", row.ctas}, {"slowdown", report.slowdown(row)}};
    json.update(cost_json(row.cost));
    json.update(figures_json(row.figures));
    budgets.push_back(std::move(json));
  }
  StepJson document{{"scenario", report.scenario},
                    {"calibration", report.calibration},
                    {"train_gpus", report.train_gpus},
                    {"generate_gpus", report.generate_gpus}};
  document.update(schedule_json(schedule_of(report.spec)));
  document.update(phases_json(report));
  StepJson best = nullptr;
  if (!report.best.empty()) best = report.best;
  document["policies"] = std::move(policies);
  document["best"] = std::move(best);
  document["schedules"] = std::move(schedules);
  document["budgets"] = std::move(budgets);
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report
