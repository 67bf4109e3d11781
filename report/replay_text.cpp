#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/replay.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

std::string verdict_text(const hw::Measurement& measurement) {
  if (measurement.passes == 0) return "not looked at";
  if (measurement.byte_exact())
    return fmt::format("byte-exact ({} of {} passes)", measurement.passes, measurement.passes_needed);
  return fmt::format("{} elements wrong", measurement.mismatch_count);
}

std::string row_text(const ReplayRow& row) {
  if (!row.refused.empty()) return fmt::format("{}: refused: {}\n", row.policy, row.refused);
  if (!row.measurement)
    return fmt::format("{}: not proven, not run: {}\n", row.policy, row.violations.front().message);
  const hw::Measurement& measurement = *row.measurement;
  std::string text = fmt::format(
      "{:<18} {:>9}  {:>9}  {:>9}  {:>9}  ", row.policy, time_text(seconds(measurement.fastest())),
      time_text(seconds(measurement.median())), size_text(measurement.moved), size_text(measurement.memory));
  if (row.predicted_seconds) {
    text += fmt::format("{:>9}  {:>7}  ", time_text(*row.predicted_seconds),
                        row.error() ? fmt::format("{:+.0f} %", 100 * *row.error()) : "-");
  }
  text += verdict_text(measurement) + (measurement.graph ? "; one graph" : "") + "\n";
  if (!measurement.graph_refused.empty())
    text += fmt::format("  no graph, launched one by one: {}\n", measurement.graph_refused);
  for (const hw::Mismatch& mismatch : measurement.mismatches) text += fmt::format("  {}\n", mismatch.message);
  return text;
}

std::string to_text(const Replay& replay) {
  const ReplayRow* ran = nullptr;
  for (const ReplayRow& row : replay.policies) {
    if (ran == nullptr && row.measurement) ran = &row;
  }
  std::string text = fmt::format("{}: {} of {} tensors on {} ranks", replay.scenario,
                                 size_text(replay.payload), replay.tensors, replay.ranks);
  if (replay.share < 1) text += fmt::format(", {:.3g} % of the scenario's bytes", 100 * replay.share);
  if (ran != nullptr) text += fmt::format("; {} ({})", ran->measurement->backend, ran->measurement->device);
  if (!replay.calibration.empty()) text += ", predicted under " + replay.calibration;
  text += fmt::format("\n\n{:<18} {:>9}  {:>9}  {:>9}  {:>9}  ", "policy", "fastest", "median", "moved",
                      "memory");
  if (!replay.calibration.empty()) text += fmt::format("{:>9}  {:>7}  ", "predicted", "error");
  text += "end state\n";
  for (const ReplayRow& row : replay.policies) text += row_text(row);
  return text;
}

Json reason_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json optional_number(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json to_json(const hw::Mismatch& mismatch) {
  return {{"tensor", mismatch.tensor.value},
          {"element", mismatch.element},
          {"rank", mismatch.rank.value},
          {"message", mismatch.message}};
}

Json to_json(const ReplayRow& row) {
  if (!row.refused.empty()) return {{"policy", row.policy}, {"refused", row.refused}};
  if (!row.measurement)
    return {{"policy", row.policy}, {"proven", false}, {"violation", row.violations.front().message}};
  const hw::Measurement& measurement = *row.measurement;
  Json times = Json::array(), mismatches = Json::array();
  for (const Duration time : measurement.times) times.push_back(seconds(time));
  for (const hw::Mismatch& mismatch : measurement.mismatches) mismatches.push_back(to_json(mismatch));
  return {{"policy", row.policy},
          {"proven", true},
          {"backend", measurement.backend},
          {"device", measurement.device},
          {"byte_exact", measurement.byte_exact()},
          {"passes", measurement.passes},
          {"passes_needed", measurement.passes_needed},
          {"mismatch_count", measurement.mismatch_count},
          {"mismatches", std::move(mismatches)},
          {"operations", row.operations},
          {"graph", measurement.graph},
          {"graph_refused", reason_or_null(measurement.graph_refused)},
          {"bytes", measurement.moved.value},
          {"verified_bytes", measurement.verified.value},
          {"memory_bytes", measurement.memory.value},
          {"measured_seconds", seconds(measurement.fastest())},
          {"median_seconds", seconds(measurement.median())},
          {"repetition_seconds", std::move(times)},
          {"predicted_seconds", optional_number(row.predicted_seconds)},
          {"error", optional_number(row.error())}};
}

Json to_json(const Replay& replay) {
  Json policies = Json::array();
  for (const ReplayRow& row : replay.policies) policies.push_back(to_json(row));
  return {{"scenario", replay.scenario},
          {"calibration", replay.calibration.empty() ? Json(nullptr) : Json(replay.calibration)},
          {"share", replay.share},
          {"payload_bytes", replay.payload.value},
          {"ranks", replay.ranks},
          {"relay_ranks", replay.relay_ranks},
          {"tensors", replay.tensors},
          {"byte_exact", replay.byte_exact()},
          {"policies", std::move(policies)}};
}

}  // namespace

std::string replay_document(const Replay& replay, bool json) {
  return json ? to_json(replay).dump(2) + "\n" : to_text(replay);
}

}  // namespace isthmus::report
