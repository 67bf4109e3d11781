#pragma once
// A traffic scenario's prediction, that of its healthy twin, their ratio, and what was published beside it:
// as text for people and as JSON (docs/json.md). Ratios are edited / healthy, by bus bandwidth where
// nccl-tests has one, else by the rate of all flows together; absolute rates belong to machines that are
// often not fully described.
// A row is within when the predicted ratio is at most 15 % off the nearer end of the published range.

#include <optional>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/scenario.hpp"
#include "sim/traffic.hpp"

namespace isthmus::report {

inline constexpr double published_tolerance = 0.15;

struct TrafficComparison {
  std::string scenario, calibration;
  sim::TrafficPrediction edited;
  std::optional<sim::TrafficPrediction> healthy;
  std::optional<double> expected;
  std::vector<PublishedRatio> published;

  /// edited / healthy.
  std::optional<double> ratio() const;
};

/// Off the nearer end of the row's range, relative to it; nullopt without a published ratio.
std::optional<double> deviation(double ratio, const PublishedRatio& row);

/// Predicts a traffic scenario and its twin; raises its first fault.
TrafficComparison compare_traffic(const Scenario& scenario);

std::string to_text(const TrafficComparison& comparison);
std::string to_json(const TrafficComparison& comparison);

}  // namespace isthmus::report
