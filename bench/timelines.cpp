// What a refit takes to plan, expand and simulate, and digests of the predicted timelines: to see whether a
// change of the simulator changed any time. Run: build/release/bench/timelines [--policy NAME] [--times FILE]
// SCENARIO...; one line per policy and calibration (wire-only, then the scenario's). --times: all times.

#include <sys/resource.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/calibration.hpp"
#include "model/error.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace {

using namespace isthmus;

struct TimelineOptions {
  std::string policy;  // empty: all
  std::ofstream times;
};

/// Processor time: the machine may be busy with other work.
class Lap {
 public:
  double next() {
    const std::clock_t now = std::clock();
    const double passed = static_cast<double>(now - start_) / CLOCKS_PER_SEC;
    start_ = now;
    return passed;
  }

 private:
  std::clock_t start_ = std::clock();
};

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e6;
}

void print(const Refit& refit, const Policy& policy, const Calibration& calibration,
           TimelineOptions& options) {
  Lap lap;
  const PlanResult result = policy.make(refit);
  const double planned = lap.next();
  if (std::holds_alternative<Refused>(result)) {
    fmt::print("{:44} {:17} refused\n", refit.name, policy.name);
    return;
  }
  const Operations operations = expand(refit, std::get<Plan>(result));
  const double expanded = lap.next();
  const sim::Simulator simulator(refit, operations);
  const double prepared = lap.next();
  for (const Calibration& constants : {wire_only(), calibration}) {
    lap.next();
    const sim::Prediction prediction = simulator.run(constants);
    const double ran = lap.next();
    fmt::print("{:44} {:17} {:12} {:016x} {:12.6f} s {} {} {:.3f} {:.3f} {:.3f}", refit.name, policy.name,
               constants.name, prediction.timeline.digest(), seconds(prediction.time), prediction.bulk.value,
               prediction.peak_staging.value, seconds(prediction.time), seconds(prediction.bulk),
               seconds(prediction.misc));
    fmt::print(
        " | {} operations, {} parts: plan {:.3f} expand {:.3f} prepare {:.3f} run {:.3f} s, {:.2f} GB\n",
        operations.list.size(), prediction.parts, planned, expanded, prepared, ran, peak_gigabytes());
    std::fflush(stdout);
    if (!options.times.is_open()) continue;
    for (const Span& span : prediction.timeline.spans) {
      options.times << span.ready.value << ' ' << span.end.value << '\n';
    }
  }
}

void run(const std::filesystem::path& file, TimelineOptions& options) {
  const Scenario scenario = read_scenario(file);
  const Refit refit = resolve(scenario);
  const Calibration calibration =
      read_calibration(scenario.calibration, std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios");
  for (const Policy& policy : policies()) {
    if (options.policy.empty() || policy.name == options.policy) print(refit, policy, calibration, options);
  }
}

}  // namespace

int main(int count, char** arguments) {
  TimelineOptions options;
  try {
    for (int i = 1; i < count; ++i) {
      const std::string_view word = arguments[i];
      if (word == "--policy" && i + 1 < count) {
        options.policy = arguments[++i];
      } else if (word == "--times" && i + 1 < count) {
        options.times.open(arguments[++i]);
      } else {
        run(word, options);
      }
    }
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
