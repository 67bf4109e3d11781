#include "report/traffic.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/refit.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

sim::TrafficPrediction traffic_prediction(const Scenario& scenario) {
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  return sim::predict_traffic(scenario_fabric(scenario), *scenario.traffic, calibration);
}

std::string rate_cell(Bandwidth rate) {
  return fmt::format("{:.3f} GB/s", static_cast<double>(rate.value) * 1e-9);
}

std::string line(std::string_view name, const sim::TrafficPrediction& prediction) {
  std::string text =
      fmt::format("{:<8} {:>12}  {:>16}  {:>16}", name, time_text(seconds(prediction.time)),
                  rate_cell(prediction.aggregate), prediction.bus ? rate_cell(*prediction.bus) : "-");
  text += fmt::format("  {} at {}, held by {} ({:.0f} % busy)", prediction.slowest,
                      rate_cell(prediction.slowest_rate), prediction.binding, 100 * prediction.busy);
  if (prediction.channels) text += fmt::format("; channels per peer: {}", *prediction.channels);
  return text + "\n";
}

std::string ratio_text(const PublishedRatio& row) {
  if (!row.low) return "no ratio";
  if (row.low == row.high) return fmt::format("{:.3g}", *row.low);
  return fmt::format("{:.3g}-{:.3g}", *row.low, *row.high);
}

std::string published_line(const PublishedRatio& row, std::optional<double> ratio) {
  std::string text = fmt::format("  {}  {}", row.id, ratio_text(row));
  if (ratio && row.low) {
    const double off = *deviation(*ratio, row);
    const bool within = std::abs(off) <= published_tolerance;
    text += fmt::format(", predicted {:.3f}: {} ({:+.0f} %)", *ratio,
                        within ? "within 15 %" : "not within 15 %", 100 * off);
  }
  text += fmt::format("\n      {}", row.symptom);
  if (!row.healthy.empty()) text += fmt::format("; healthy {}", row.healthy);
  if (!row.edited.empty()) text += fmt::format("; edited {}", row.edited);
  return text + fmt::format(" ({})\n", row.source);
}

Json json_of(const sim::TrafficPrediction& prediction) {
  Json document{{"seconds", seconds(prediction.time)},
                {"bytes", prediction.carried.value},
                {"bytes_per_second", prediction.aggregate.value},
                {"bus_bytes_per_second", nullptr},
                {"streams", prediction.streams},
                {"slowest", prediction.slowest},
                {"slowest_bytes_per_second", prediction.slowest_rate.value},
                {"binding_resource", prediction.binding},
                {"busy", prediction.busy},
                {"channels_per_peer", nullptr}};
  if (prediction.bus) document["bus_bytes_per_second"] = prediction.bus->value;
  if (prediction.channels) document["channels_per_peer"] = *prediction.channels;
  return document;
}

Json json_of(const PublishedRatio& row, std::optional<double> ratio) {
  Json document{{"id", row.id},         {"ratio", nullptr},       {"healthy", row.healthy},
                {"edited", row.edited}, {"symptom", row.symptom}, {"source", row.source},
                {"deviation", nullptr}, {"within", nullptr}};
  if (row.low) document["ratio"] = {*row.low, *row.high};
  if (row.low && ratio) {
    const double off = *deviation(*ratio, row);
    document["deviation"] = off;
    document["within"] = std::abs(off) <= published_tolerance;
  }
  return document;
}

}  // namespace

std::optional<double> TrafficComparison::ratio() const {
  if (!healthy) return std::nullopt;
  return static_cast<double>(edited.rate().value) / static_cast<double>(healthy->rate().value);
}

std::optional<double> deviation(double ratio, const PublishedRatio& row) {
  if (!row.low) return std::nullopt;
  if (ratio < *row.low) return ratio / *row.low - 1;
  return ratio > *row.high ? ratio / *row.high - 1 : 0;
}

TrafficComparison compare_traffic(const Scenario& scenario) {
  raise_first(traffic_faults(scenario));
  TrafficComparison result;
  result.scenario = scenario.name;
  result.calibration = scenario.calibration;
  result.expected = scenario.traffic->expected;
  result.published = scenario.traffic->published;
  result.edited = traffic_prediction(scenario);
  if (const std::optional<Scenario> twin = healthy_twin(scenario)) result.healthy = traffic_prediction(*twin);
  return result;
}

std::string to_text(const TrafficComparison& comparison) {
  std::string text =
      fmt::format("{}: calibration {}\n\n{:<8} {:>12}  {:>16}  {:>16}  slowest\n", comparison.scenario,
                  comparison.calibration, "", "time", "all flows", "busbw");
  const std::optional<double> ratio = comparison.ratio();
  if (comparison.healthy) text += line("healthy", *comparison.healthy);
  text += line(comparison.healthy ? "edited" : "traffic", comparison.edited);
  if (ratio) text += fmt::format("\nedited / healthy: {:.3f}\n", *ratio);
  if (!comparison.published.empty()) text += "\npublished:\n";
  for (const PublishedRatio& row : comparison.published) text += published_line(row, ratio);
  return text;
}

std::string to_json(const TrafficComparison& comparison) {
  const std::optional<double> ratio = comparison.ratio();
  Json published = Json::array();
  for (const PublishedRatio& row : comparison.published) published.push_back(json_of(row, ratio));
  Json document{{"scenario", comparison.scenario},
                {"calibration", comparison.calibration},
                {"healthy", nullptr},
                {"edited", json_of(comparison.edited)},
                {"ratio", nullptr},
                {"expected_ratio", nullptr},
                {"published", std::move(published)}};
  if (comparison.healthy) document["healthy"] = json_of(*comparison.healthy);
  if (ratio) document["ratio"] = *ratio;
  if (comparison.expected) document["expected_ratio"] = *comparison.expected;
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report
