#pragma once
// One refit, its plans executed: each is proven, lowered to bytes, run by a backend (hw/executor.hpp) and,
// where asked for, predicted beside. The numbers that table, JSON and gates show come from this value.
// error = measured / predicted - 1, of the fastest repetition. What is predicted is the scenario's fabric
// under a calibration; what is measured is the machine that ran it: they compare where it is that machine.
// What GPUs ran is predicted as they run it (report/gpu_prediction.hpp).

#include <optional>
#include <string>
#include <vector>

#include "hw/executor.hpp"
#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/check.hpp"

namespace isthmus::report {

struct ReplayRow {
  std::string policy;
  std::string refused;                  // the reason; empty when the policy made a plan
  std::vector<Violation> violations{};  // of a plan that could not be proven; it is not run then
  std::optional<hw::Measurement> measurement{};
  std::size_t operations = 0;
  std::optional<double> predicted_seconds{};

  std::optional<double> error() const;
};

struct Replay {
  std::string scenario, backend;
  std::string calibration;  // empty where nothing is predicted
  double share = 1;         // of the scenario's bytes (model/refit_scale.hpp)
  Bytes payload;
  std::size_t ranks = 0, relay_ranks = 0, tensors = 0;  // ranks: of both sides
  std::vector<ReplayRow> policies;

  /// Every plan that was made is proven, ran, and left every byte right.
  bool byte_exact() const;
  /// Every error that there is lies within the tolerance, to either side.
  bool within(double tolerance) const;
};

struct ReplaySettings {
  hw::RunOptions options;
  std::optional<Calibration> calibration;  // predict under it
  double share = 1;
};

/// Plans the named policies and runs them one after the other. Raises InputError when every one is refused,
/// and what executors raise.
Replay replay(const Refit& refit, const std::vector<std::string>& names, hw::Executor& executor,
              const ReplaySettings& settings);
/// Runs a plan that is there.
Replay replay_plan(const Refit& refit, const Plan& plan, hw::Executor& executor,
                   const ReplaySettings& settings);

/// The table a person reads, or the JSON of docs/replay.md. Ends with a newline.
std::string replay_document(const Replay& replay, bool json);

}  // namespace isthmus::report
