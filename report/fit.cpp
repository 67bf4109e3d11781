#include "report/fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "planner/operations.hpp"
#include "report/scoreboard.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

/// Constants that move together, and the values they are tried at.
struct FitAxis {
  std::string_view key;
  std::vector<Constant Calibration::*> members;
  std::vector<double> values;
};

const std::vector<FitAxis>& axes() {
  static const std::vector<FitAxis> all{
      {"python_call_time",
       {&Calibration::python_call_time},
       {0.5e-3, 1e-3, 1.25e-3, 1.5e-3, 2e-3, 2.5e-3, 3e-3, 4e-3}},
      {"native_call_time",
       {&Calibration::native_call_time},
       {0.01e-3, 0.02e-3, 0.03e-3, 0.05e-3, 0.07e-3, 0.1e-3, 0.15e-3, 0.2e-3, 0.25e-3, 0.3e-3, 0.4e-3, 0.5e-3,
        0.6e-3}},
      {"export_time_per_tensor, load_time_per_tensor",
       {&Calibration::export_time_per_tensor, &Calibration::load_time_per_tensor},
       {0.05e-3, 0.06e-3, 0.07e-3, 0.08e-3, 0.09e-3, 0.1e-3, 0.12e-3, 0.15e-3}}};
  return all;
}

using Choice = std::vector<std::size_t>;  // by axis: which of its values

/// Whether the constants of an axis act in plans of this policy at all.
bool acts(std::size_t axis, std::string_view policy) {
  if (axis == 0) return policy == "striped" || policy == "golden";
  return axis == 1 ? policy.starts_with("m2n") : true;
}

/// The next combination; false after the last one. Axes that are not free stay at their first value.
template <class Free>
bool advance(Choice& choice, Free free) {
  for (std::size_t axis = 0; axis < choice.size(); ++axis) {
    if (!free(axis)) continue;
    if (++choice[axis] < axes()[axis].values.size()) return true;
    choice[axis] = 0;
  }
  return false;
}

/// A row with its prediction under every combination.
struct FitSample {
  FitRow row;
  std::string policy;
  std::map<Choice, double> seconds;  // of axes that do not act, the first value
  double wire = 0;                   // seconds under wire-only
  double payload = 0, tensors = 0;

  double predicted(Choice choice) const {
    for (std::size_t axis = 0; axis < choice.size(); ++axis)
      if (!acts(axis, policy)) choice[axis] = 0;
    return seconds.at(choice);
  }
  double error(double predicted_seconds) const {
    if (predicted_seconds < row.seconds_low) return predicted_seconds / row.seconds_low - 1;
    return predicted_seconds > row.seconds_high ? predicted_seconds / row.seconds_high - 1 : 0;
  }
};
using FitSamples = std::vector<FitSample>;
using Keep = std::function<bool(const FitSample&)>;

void simulate_combinations(const Scenario& scenario, FitSample& sample) {
  const Refit refit = resolve(scenario);
  const PlanResult made = find_policy(sample.policy)->make(refit);
  const Operations operations = expand(refit, std::get<Plan>(made));
  const sim::Simulator simulator(refit, operations);
  const Calibration calibration = read_calibration(scenario.calibration, scenario.file.parent_path());
  sample.wire = seconds(simulator.run(wire_only()).time);
  sample.payload = static_cast<double>(refit.payload().value);
  for (const RefitEntry& entry : refit.tensors) sample.tensors += static_cast<double>(entry.tensor.parts);
  Choice choice(axes().size(), 0);
  do {
    Calibration changed = calibration;
    for (std::size_t axis = 0; axis < choice.size(); ++axis) {
      for (Constant Calibration::*member : axes()[axis].members)
        (changed.*member).value = axes()[axis].values[choice[axis]];
    }
    sample.seconds[choice] = seconds(simulator.run(changed).time);
  } while (advance(choice, [&](std::size_t axis) { return acts(axis, sample.policy); }));
}

FitSamples samples_of(const std::filesystem::path& folder) {
  FitSamples samples;
  std::map<std::pair<std::string, std::string>, FitSample> done;
  for (const ScoreRow& row : read_scoreboard(folder).rows) {
    const Published& published = row.published;
    if (!published.counted || published.blind()) continue;
    const std::pair<std::string, std::string> key{row.scenario, published.policy};
    if (!done.contains(key)) {
      const Scenario scenario = read_scenario(folder / (row.scenario + ".yaml"));
      FitSample& sample = done[key];
      sample.row.model =
          scenario.model ? std::filesystem::path(scenario.model->config).stem().string() : "bare tensors";
      sample.policy = published.policy;
      simulate_combinations(scenario, sample);
    }
    FitSample sample = done.at(key);
    sample.row.id = published.id;
    sample.row.reachable = sample.wire <= published.seconds_high;
    sample.row.used = published.used_for_fit && sample.row.reachable;
    sample.row.seconds_low = published.seconds_low;
    sample.row.seconds_high = published.seconds_high;
    samples.push_back(std::move(sample));
  }
  return samples;
}

double mean_log_error(const FitSamples& samples, const Keep& keep,
                      const std::function<double(const FitSample&)>& predict) {
  double sum = 0;
  int count = 0;
  for (const FitSample& sample : samples) {
    if (!keep(sample)) continue;
    sum += std::abs(std::log(1 + sample.error(predict(sample))));
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

/// The best of all combinations; of equal ones the first, hence the smaller values.
Choice best_choice(const FitSamples& samples, const Keep& keep) {
  Choice choice(axes().size(), 0), best = choice;
  double least = std::numeric_limits<double>::infinity();
  do {
    const double error =
        mean_log_error(samples, keep, [&](const FitSample& sample) { return sample.predicted(choice); });
    if (error < least - 1e-12) least = error, best = choice;
  } while (advance(choice, [](std::size_t) { return true; }));
  return best;
}

struct Baseline {
  double rate = 1, time = 0;
  double predicted(const FitSample& sample) const { return sample.payload / rate + time * sample.tensors; }
};

/// On a grid of 5 % steps in the rate and in the time, zero included.
Baseline best_baseline(const FitSamples& samples, const Keep& keep) {
  Baseline best;
  double least = std::numeric_limits<double>::infinity();
  for (double rate = 10e9; rate < 1e12; rate *= 1.05) {
    for (double time = 0; time < 2e-3; time = time == 0 ? 1e-6 : time * 1.05) {
      const Baseline tried{rate, time};
      const double error =
          mean_log_error(samples, keep, [&](const FitSample& sample) { return tried.predicted(sample); });
      if (error < least - 1e-12) least = error, best = tried;
    }
  }
  return best;
}

/// Errors of every row, each predicted by what `fit` makes of the rows that `others` keeps for it.
template <class Predict>
FitColumn column(const std::string& name, const FitSamples& samples, Predict predict) {
  FitColumn result{name, {}};
  for (const FitSample& sample : samples) result.errors.push_back(sample.error(predict(sample)));
  return result;
}

void add_columns(const FitSamples& samples, Fit& fit) {
  const auto used = [](const FitSample& sample) { return sample.row.used; };
  const auto but_row = [&](const FitSample& out) -> Keep {
    return [&](const FitSample& s) { return s.row.used && s.row.id != out.row.id; };
  };
  const auto but_model = [&](const FitSample& out) -> Keep {
    return [&](const FitSample& s) { return s.row.used && s.row.model != out.row.model; };
  };
  const Choice choice = best_choice(samples, used);
  const Baseline baseline = best_baseline(samples, used);
  fit.baseline_rate = baseline.rate;
  fit.baseline_time = baseline.time;
  for (std::size_t axis = 0; axis < axes().size(); ++axis)
    fit.values[axis].fitted = axes()[axis].values[choice[axis]];
  using Sample = const FitSample&;
  fit.columns = {column("fit", samples, [&](Sample s) { return s.predicted(choice); }),
                 column("row left out", samples,
                        [&](Sample s) { return s.predicted(best_choice(samples, but_row(s))); }),
                 column("model left out", samples,
                        [&](Sample s) { return s.predicted(best_choice(samples, but_model(s))); }),
                 column("baseline", samples, [&](Sample s) { return baseline.predicted(s); }),
                 column("baseline, row left out", samples,
                        [&](Sample s) { return best_baseline(samples, but_row(s)).predicted(s); }),
                 column("baseline, model left out", samples,
                        [&](Sample s) { return best_baseline(samples, but_model(s)).predicted(s); })};
}

double median(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  const std::size_t half = errors.size() / 2;
  if (errors.empty()) return 0;
  return errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
}

}  // namespace

Fit fit_constants(const std::filesystem::path& folder) {
  Fit fit;
  const FitSamples samples = samples_of(folder);
  const Calibration calibration = read_calibration("h100-ib400", folder);
  for (const FitAxis& axis : axes())
    fit.values.push_back({std::string(axis.key), (calibration.*axis.members.front()).value, 0});
  for (const FitSample& sample : samples) fit.rows.push_back(sample.row);
  add_columns(samples, fit);
  return fit;
}

std::string to_markdown(const Fit& fit) {
  std::string text =
      "# The fit of the calibration's fitted constants\n\nGenerated by `build/release/bench/fit`; do not "
      "edit. "
      "How it works: `report/fit.hpp`.\n\n| constant | in the calibration | fitted |\n| --- | --- | --- |\n";
  for (const FittedValue& value : fit.values)
    text +=
        fmt::format("| `{}` | {:.3g} ms | {:.3g} ms |\n", value.key, 1e3 * value.before, 1e3 * value.fitted);
  text += fmt::format(
      "\nBaseline: payload / {:.1f} GB/s + {:.4f} ms x tensors.\n\n| errors, % | served the fit |",
      fit.baseline_rate * 1e-9, 1e3 * fit.baseline_time);
  for (const FitColumn& each : fit.columns) text += fmt::format(" {} |", each.name);
  text += "\n| --- | --- |";
  for (std::size_t i = 0; i < fit.columns.size(); ++i) text += " --- |";
  for (std::size_t i = 0; i < fit.rows.size(); ++i) {
    text += fmt::format("\n| {} ({}) | {} |", fit.rows[i].id, fit.rows[i].model,
                        fit.rows[i].used        ? "yes"
                        : fit.rows[i].reachable ? "no"
                                                : "no: the wire alone is slower");
    for (const FitColumn& each : fit.columns) text += fmt::format(" {:+.0f} |", 100 * each.errors[i]);
  }
  for (const bool used : {true, false}) {
    text += fmt::format("\n| **median, {}** | |", used ? "rows of the fit" : "rows that served no fit");
    for (const FitColumn& each : fit.columns) {
      std::vector<double> errors;
      for (std::size_t i = 0; i < fit.rows.size(); ++i)
        if (fit.rows[i].used == used) errors.push_back(each.errors[i]);
      text += fmt::format(" {:.0f} |", 100 * median(errors));
    }
  }
  text += "\n| **median, all** | |";
  for (const FitColumn& each : fit.columns) text += fmt::format(" {:.0f} |", 100 * median(each.errors));
  return text + "\n";
}

}  // namespace isthmus::report
