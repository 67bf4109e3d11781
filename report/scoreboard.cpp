#include "report/scoreboard.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <exception>
#include <future>
#include <map>

#include <fmt/format.h>

#include "model/scenario.hpp"
#include "model/text.hpp"

namespace isthmus::report {
namespace {

/// A run of digits compares by value, all else by character.
bool natural_less(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    return text.substr(at, end - at);
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const std::string_view left = digits(a, i), right = digits(b, j);
    if (!left.empty() && !right.empty()) {
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      i += left.size();
      j += right.size();
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

std::vector<Scenario> read_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code code;
  for (std::filesystem::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (at->path().extension() == ".yaml") files.push_back(at->path());
  std::sort(files.begin(), files.end());
  std::vector<Scenario> scenarios;
  for (const std::filesystem::path& file : files) {
    Scenario scenario = read_scenario(file);
    if (!scenario.published.empty()) scenarios.push_back(std::move(scenario));
  }
  if (scenarios.empty())
    throw InputError({printable(folder.string(), 4096), 0, ""}, "no scenario with published rows",
                     "a folder of scenarios (docs/scenario.md)");
  return scenarios;
}

/// Names are checked here and not in the reader, which knows no policies.
void judge_policies(const Scenario& scenario, std::size_t index) {
  const Published& row = scenario.published[index];
  std::vector<std::string> names = row.alternatives;
  if (row.policy != no_policy) names.push_back(row.policy);
  std::string known;
  for (const Policy& policy : policies()) known += fmt::format("{}, ", policy.name);
  for (const std::string& name : names) {
    if (find_policy(name) == nullptr)
      throw InputError(scenario.at(fmt::format("published.{}.policy", index)),
                       fmt::format("'{}'", printable(name)), fmt::format("{}{}", known, no_policy));
  }
}

std::vector<ScoreRow> rows_of(const Scenario& scenario) {
  std::vector<ScoreRow> rows;
  for (std::size_t i = 0; i < scenario.published.size(); ++i) {
    judge_policies(scenario, i);
    ScoreRow row;
    row.published = scenario.published[i];
    row.scenario = scenario.name;
    row.calibration = scenario.calibration;
    row.prediction.policy = row.published.policy;
    row.prediction.refused = row.published.policy == no_policy ? "no policy stands for this row" : "not run";
    rows.push_back(std::move(row));
  }
  return rows;
}

void judge_ids(const std::vector<Scenario>& scenarios) {
  std::map<std::string, std::string> first;
  for (const Scenario& scenario : scenarios) {
    for (std::size_t i = 0; i < scenario.published.size(); ++i) {
      const auto [at, fresh] = first.try_emplace(scenario.published[i].id, scenario.name);
      if (!fresh)
        throw InputError(scenario.at(fmt::format("published.{}.id", i)),
                         fmt::format("'{}', which {} has too", printable(at->first), at->second),
                         "each id once in a folder");
    }
  }
}

/// Counted and blind rows have an interval.
bool wants_interval(const ScoreRow& row) { return row.published.counted || row.published.blind(); }

/// What rows are simulated under beside the calibration itself: for shares, then for the interval.
std::vector<Calibration> further_calibrations(const std::vector<ScoreRow>& rows,
                                              const Calibration& calibration) {
  std::vector<Calibration> further = share_calibrations(calibration);
  if (std::none_of(rows.begin(), rows.end(), wants_interval)) return further;
  for (Calibration& end : interval_calibrations(calibration)) further.push_back(std::move(end));
  return further;
}

void judge_stages(ScoreRow& row, std::size_t shares) {
  const std::vector<double>& all = row.prediction.stages;
  row.shares = shares_of(row.prediction.seconds, all);
  if (!wants_interval(row) || all.size() <= shares) return;
  const auto ends = all.begin() + static_cast<std::ptrdiff_t>(shares);
  row.interval = interval_of(row.prediction.seconds, {ends, all.end()});
}

/// All rows of one scenario; each policy runs once.
std::vector<ScoreRow> predicted_rows(const Scenario& scenario) {
  std::vector<ScoreRow> rows = rows_of(scenario);
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = resolve(scenario);
  const LowerBound bound = lower_bound(refit);
  const std::vector<Calibration> further = further_calibrations(rows, calibration);
  const std::size_t shares = share_calibrations(calibration).size();
  std::map<std::string, PolicyRow> done;
  const auto of = [&](const std::string& name, const auto& run) {
    const auto found = done.find(name);
    return found != done.end() ? found->second : done.emplace(name, run(*find_policy(name))).first->second;
  };
  for (ScoreRow& row : rows) {
    row.bound_seconds = seconds(bound.time);
    row.payload = refit.payload();
    row.live_bytes = refit.largest_live_share();
    row.gpu_memory = gpu_memory(scenario.fabric);
    if (row.published.policy == no_policy) continue;
    row.prediction = of(row.published.policy, [&](const Policy& policy) {
      return run_policy(refit, policy, calibration, bound, further, sim::Detail::totals);
    });
    judge_stages(row, shares);
  }
  for (ScoreRow& row : rows) {
    for (const std::string& name : row.published.alternatives) {
      row.alternatives.push_back(
          of(name, [&](const Policy& policy) { return time_policy(refit, policy, calibration); }));
    }
  }
  return rows;
}

int gpus_of(const Scenario& scenario) {
  return scenario.train && scenario.generate ? scenario.train->gpus + scenario.generate->gpus : 0;
}

Scoreboard joined(std::vector<std::vector<ScoreRow>> parts) {
  Scoreboard result;
  for (std::vector<ScoreRow>& part : parts)
    for (ScoreRow& row : part) result.rows.push_back(std::move(row));
  std::sort(result.rows.begin(), result.rows.end(), [](const ScoreRow& a, const ScoreRow& b) {
    return natural_less(a.published.id, b.published.id);
  });
  return result;
}

std::vector<MeasuredBoard> predict_measured_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code code;
  for (std::filesystem::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (at->path().extension() == ".jsonl") files.push_back(at->path());
  std::sort(files.begin(), files.end());
  std::vector<MeasuredBoard> boards;
  for (const std::filesystem::path& file : files)
    boards.push_back(predict_measured(file, measured_calibration));
  return boards;
}

}  // namespace

std::optional<double> nearest_error(double seconds, const Published& row) {
  if (row.blind()) return std::nullopt;
  if (seconds < row.seconds_low) return seconds / row.seconds_low - 1;
  return seconds > row.seconds_high ? seconds / row.seconds_high - 1 : 0;
}

std::optional<double> ScoreRow::error() const {
  return prediction.predicted() ? nearest_error(prediction.seconds, published) : std::nullopt;
}

std::optional<double> ScoreRow::midpoint_error() const {
  if (!prediction.predicted() || published.blind()) return std::nullopt;
  return prediction.seconds / ((published.seconds_low + published.seconds_high) / 2) - 1;
}

const ScoreRow* Scoreboard::find(std::string_view id) const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ScoreRow& row) { return row.published.id == id; });
  return found == rows.end() ? nullptr : &*found;
}

Scoreboard read_scoreboard(const std::filesystem::path& folder) {
  const std::vector<Scenario> scenarios = read_folder(folder);
  judge_ids(scenarios);
  std::vector<std::vector<ScoreRow>> parts;
  for (const Scenario& scenario : scenarios) parts.push_back(rows_of(scenario));
  return joined(std::move(parts));
}

Scoreboard predict_scoreboard(const std::filesystem::path& folder, unsigned threads) {
  std::vector<Scenario> scenarios = read_folder(folder);
  judge_ids(scenarios);
  for (const Scenario& scenario : scenarios) static_cast<void>(rows_of(scenario));  // faults before any work
  // Large ones first, so that none runs alone at the end.
  std::stable_sort(scenarios.begin(), scenarios.end(),
                   [](const Scenario& a, const Scenario& b) { return gpus_of(a) > gpus_of(b); });
  std::vector<std::vector<ScoreRow>> parts(scenarios.size());
  std::vector<std::exception_ptr> failures(scenarios.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < scenarios.size(); i = next++) {
      try {
        parts[i] = predicted_rows(scenarios[i]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::max(threads, 1U); ++i)
    workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  Scoreboard result = joined(std::move(parts));
  result.measured = predict_measured_in(folder / "measured");
  return result;
}

ScoreSummary summarise(const Scoreboard& scoreboard, bool with_fitted_rows) {
  ScoreSummary summary;
  std::vector<double> errors;
  for (const ScoreRow& row : scoreboard.rows) {
    const std::optional<double> error = row.error();
    const bool chosen = row.published.counted && (with_fitted_rows || !row.published.used_for_fit);
    if (!chosen || !error) continue;
    errors.push_back(std::abs(*error));
    const bool meets = row.interval && row.interval->low <= row.published.seconds_high &&
                       row.published.seconds_low <= row.interval->high;
    if (meets) ++summary.met;
  }
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  std::sort(errors.begin(), errors.end());
  const std::size_t half = errors.size() / 2;
  summary.median = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  summary.largest = errors.back();
  const auto within = [&](double limit) {
    return static_cast<std::size_t>(std::upper_bound(errors.begin(), errors.end(), limit) - errors.begin());
  };
  summary.within_tenth = within(0.10);
  summary.within_quarter = within(0.25);
  return summary;
}

}  // namespace isthmus::report
