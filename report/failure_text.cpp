#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/failure.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using FailureJson = nlohmann::ordered_json;

std::string fault_text(const FailureQuestion& question) {
  const MachineFault& fault = question.fault;
  std::string text = fmt::format("{} at {}", to_string(fault.what), time_text(seconds(fault.at)));
  text += fault.share == 0 ? " fails" : fmt::format(" keeps {:.4g} of its capacity", fault.share);
  return text + (fault.until ? fmt::format(", until {}", time_text(seconds(*fault.until))) : ", for good");
}

struct ArrivalTotals {
  std::size_t complete = 0, partial = 0, missing = 0;
  Bytes wanted, arrived;
};

ArrivalTotals totals_of(const FailureRun& run) {
  ArrivalTotals totals;
  for (const sim::RankArrival& each : run.arrivals) {
    totals.complete += each.complete;
    totals.partial += each.partial;
    totals.missing += each.missing;
    totals.wanted += each.wanted;
    totals.arrived += each.arrived;
  }
  return totals;
}

std::vector<std::string> failure_cells(const FailureRow& row, const FailureRun& run) {
  const ArrivalTotals totals = totals_of(run);
  const bool stopped = run.outcome.stopped();
  return {row.policy,
          std::string(to_string(run.rule)),
          time_text(row.healthy_seconds),
          (stopped ? "stops at " : "") + time_text(run.seconds),
          time_text(run.lost_seconds),
          fmt::format("{} / {}", run.outcome.failed.size(), run.outcome.never_started.size()),
          fmt::format("{} / {} / {}", totals.complete, totals.partial, totals.missing),
          fmt::format("{} of {}", size_text(totals.arrived), size_text(totals.wanted)),
          fmt::format("{} / {} / {}", run.serving(sim::Serves::new_weights),
                      run.serving(sim::Serves::old_weights), run.serving(sim::Serves::neither)),
          time_text(row.deadline_seconds),
          fmt::format("{:.4f} %", 100 * run.goodput)};
}

std::string_view serves_text(sim::Serves serves) {
  switch (serves) {
    case sim::Serves::old_weights: return "old";
    case sim::Serves::new_weights: return "new";
    case sim::Serves::neither: return "neither";
  }
  return "";
}

FailureJson arrival_json(const sim::RankArrival& arrival, const Refit& refit, bool tensors) {
  FailureJson json{{"rank", arrival.rank.value},           {"tensors_complete", arrival.complete},
                   {"tensors_partial", arrival.partial},   {"tensors_missing", arrival.missing},
                   {"bytes", arrival.wanted.value},        {"arrived_bytes", arrival.arrived.value},
                   {"serves", serves_text(arrival.serves)}};
  if (!tensors) return json;
  FailureJson list = FailureJson::array();
  for (const sim::TensorArrival& each : arrival.incomplete) {
    list.push_back({{"tensor", refit.tensors[each.tensor.index()].tensor.name},
                    {"bytes", each.wanted.value},
                    {"arrived_bytes", each.arrived.value}});
  }
  json["incomplete"] = std::move(list);
  return json;
}

FailureJson run_json(const FailureRun& run, const Refit& refit, bool tensors) {
  FailureJson ranks = FailureJson::array();
  for (const sim::RankArrival& each : run.arrivals) ranks.push_back(arrival_json(each, refit, tensors));
  return {{"failed_steps", to_string(run.rule)},
          {"stopped", run.outcome.stopped()},
          {"seconds", run.seconds},
          {"lost_seconds", run.lost_seconds},
          {"operations_failed", run.outcome.failed.size()},
          {"operations_never_started", run.outcome.never_started.size()},
          {"failed_attempts", run.outcome.failures},
          {"detours", run.outcome.detours},
          {"repeated_bytes", run.outcome.repeated.value},
          {"goodput", run.goodput},
          {"refits_per_month", run.refits_per_month},
          {"ranks_serving",
           {{"new", run.serving(sim::Serves::new_weights)},
            {"old", run.serving(sim::Serves::old_weights)},
            {"neither", run.serving(sim::Serves::neither)}}},
          {"ranks", std::move(ranks)}};
}

}  // namespace

std::string to_text(const FailureReport& report) {
  std::string text = fmt::format(
      "{}: {}\ncalibration {}, timeout {}, {:.4g} failures per day, {} from a refit to the next\n\n",
      report.scenario, fault_text(report.question), report.calibration, time_text(seconds(report.timeout)),
      report.question.failures_per_day, time_text(seconds(report.question.interval)));
  std::vector<std::vector<std::string>> rows{{"policy", "failed steps", "healthy", "with the fault", "lost",
                                              "failed / not started", "complete / partial / missing",
                                              "arrived", "ranks serving new / old / neither", "deadline",
                                              "goodput"}};
  std::string refusals;
  for (const FailureRow& row : report.rows) {
    for (const FailureRun& run : row.runs) rows.push_back(failure_cells(row, run));
    if (!row.refused.empty()) refusals += fmt::format("{}: refused: {}\n", row.policy, row.refused);
  }
  if (rows.size() > 1) text += columns_text(rows);
  text +=
      "\ncomplete / partial / missing: shards of tensors, over all target ranks. A rank may go on serving\n"
      "the old weights while nothing was written in place there. Give a refit up at its deadline: no run\n"
      "above that completes takes longer. docs/faults.md has the formulas.\n";
  return refusals.empty() ? text : text + "\n" + refusals;
}

std::string to_json(const FailureReport& report, const Refit& refit, bool tensors) {
  const MachineFault& fault = report.question.fault;
  FailureJson policies = FailureJson::array();
  for (const FailureRow& row : report.rows) {
    if (!row.refused.empty()) {
      policies.push_back({{"policy", row.policy}, {"refused", row.refused}});
      continue;
    }
    FailureJson runs = FailureJson::array();
    for (const FailureRun& run : row.runs) runs.push_back(run_json(run, refit, tensors));
    policies.push_back({{"policy", row.policy},
                        {"healthy_seconds", row.healthy_seconds},
                        {"deadline_seconds", row.deadline_seconds},
                        {"healthy_refits_per_month", row.healthy_refits_per_month},
                        {"runs", std::move(runs)}});
  }
  FailureJson until = nullptr;
  if (fault.until) until = seconds(*fault.until);
  const FailureJson document{{"scenario", report.scenario},
                             {"calibration", report.calibration},
                             {"what", to_string(fault.what)},
                             {"at_seconds", seconds(fault.at)},
                             {"change", fault.share},
                             {"until_seconds", std::move(until)},
                             {"timeout_seconds", seconds(report.timeout)},
                             {"failures_per_day", report.question.failures_per_day},
                             {"interval_seconds", seconds(report.question.interval)},
                             {"policies", std::move(policies)}};
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report
