// The scoreboard as a table for people and as JSON.

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/scoreboard.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

std::string use_text(const Published& row) {
  const std::string_view use = row.blind() ? "blind" : row.counted ? "counted" : "no";
  return fmt::format("{}{}", use, row.used_for_fit ? ", fit" : "");
}

std::string help_text(const ScoreRow& row) {
  const ChangeRow* help = most_helpful(row);
  if (help == nullptr) return "-";
  return fmt::format("{}: {} ({})", help->what, time_text(help->seconds),
                     signed_percent(help->seconds / row.prediction.seconds - 1));
}

std::vector<std::string> cells(const ScoreRow& row) {
  const PolicyRow& prediction = row.prediction;
  std::vector<std::string> line{row.published.id, prediction.policy, published_text(row.published)};
  if (!prediction.predicted()) {
    line.insert(line.end(), {"-", "-", "-", "-", "-", "-", "-", "-", use_text(row.published)});
    line.push_back(prediction.refused.empty() ? "not proven" : prediction.refused);
    return line;
  }
  const double software = prediction.seconds > 0 ? prediction.software_seconds / prediction.seconds : 0;
  line.insert(line.end(), {time_text(prediction.seconds), signed_percent(row.error()),
                           signed_percent(row.midpoint_error()), time_text(prediction.bulk_seconds),
                           time_text(prediction.misc_seconds), time_text(prediction.other_seconds),
                           fmt::format("{:.0f} %", 100 * software), time_text(row.bound_seconds),
                           use_text(row.published), prediction.binding_resource});
  return line;
}

std::string summary_text(const char* rows, const ScoreSummary& summary) {
  if (summary.rows == 0) return fmt::format("{}: none\n", rows);
  return fmt::format(
      "{}: {}; median error {:.1f} %, largest {:.1f} %; {} within 10 %, {} within 25 %; {} meet "
      "the predicted interval\n",
      rows, summary.rows, 100 * summary.median, 100 * summary.largest, summary.within_tenth,
      summary.within_quarter, summary.met);
}

Json number(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json shares_json(const ScoreRow& row) {
  if (row.prediction.stages.empty()) return {};
  return {{"metal", row.shares.metal},
          {"source", row.shares.source},
          {"datasheet", row.shares.datasheet},
          {"fitted", row.shares.fitted},
          {"judgement", row.shares.judgement}};
}

Json parts_of(const ScoreRow& row) {
  const PolicyRow& prediction = row.prediction;
  return {{"bulk_seconds", prediction.bulk_seconds},
          {"misc_seconds", prediction.misc_seconds},
          {"other_seconds", prediction.other_seconds},
          {"software_seconds", prediction.software_seconds},
          {"lower_bound_seconds", row.bound_seconds},
          {"binding_resource", prediction.binding_resource},
          {"network_bytes", prediction.network_bytes.value},
          {"nvlink_bytes", prediction.nvlink_bytes.value},
          {"peak_staging_bytes", prediction.peak_staging_bytes.value},
          {"payload_bytes", row.payload.value},
          {"target_live_bytes", row.live_bytes.value},
          {"gpu_memory_bytes", row.gpu_memory ? Json(row.gpu_memory->value) : Json()}};
}

Json alternatives_of(const ScoreRow& row) {
  Json alternatives = Json::array();
  for (const PolicyRow& other : row.alternatives) {
    if (!other.refused.empty()) {
      alternatives.push_back({{"policy", other.policy}, {"refused", other.refused}});
      continue;
    }
    alternatives.push_back(
        {{"policy", other.policy},
         {"predicted_seconds", other.predicted() ? Json(other.seconds) : Json()},
         {"error", number(other.predicted() ? nearest_error(other.seconds, row.published) : std::nullopt)}});
  }
  return alternatives;
}

Json what_ifs_of(const ScoreRow& row) {
  if (row.what_ifs.empty()) return {};
  Json list = Json::array();
  for (const ChangeRow& change : row.what_ifs) {
    Json settings = Json::array();
    for (const auto& [key, value] : change.settings) settings.push_back(fmt::format("{}={}", key, value));
    Json each{{"what", change.what}, {"policy", change.policy}, {"set", std::move(settings)}};
    if (change.refused.empty()) {
      each["predicted_seconds"] = change.seconds;
      each["gain_seconds"] = row.prediction.seconds - change.seconds;
    } else {
      each["refused"] = change.refused;
    }
    list.push_back(std::move(each));
  }
  return list;
}

Json json_of(const ScoreRow& row) {
  const Published& published = row.published;
  const bool predicted = row.prediction.predicted();
  Json range;
  if (!published.blind()) range = {published.seconds_low, published.seconds_high};
  Json document{{"id", published.id},
                {"scenario", row.scenario},
                {"policy", published.policy},
                {"calibration", row.calibration},
                {"published_seconds", std::move(range)},
                {"predicted_seconds", predicted ? Json(row.prediction.seconds) : Json()},
                {"predicted_interval", row.interval ? Json{row.interval->low, row.interval->high} : Json()},
                {"error", number(row.error())},
                {"midpoint_error", number(row.midpoint_error())},
                {"counted", published.counted},
                {"used_for_fit", published.used_for_fit}};
  if (predicted) document.update(parts_of(row));
  document["shares"] = shares_json(row);
  if (!row.prediction.refused.empty()) document["refused"] = row.prediction.refused;
  document["alternatives"] = alternatives_of(row);
  document["what_ifs"] = what_ifs_of(row);
  document["source"] = published.source;
  document["remark"] = published.remark;
  document["diagnosis"] = published.diagnosis;
  return document;
}

}  // namespace

std::string to_table(const Scoreboard& scoreboard) {
  std::vector<std::vector<std::string>> rows{{"id", "policy", "published", "predicted", "error", "midpoint",
                                              "bulk", "misc", "other", "software", "bound", "use",
                                              "what binds"}};
  for (const ScoreRow& row : scoreboard.rows) rows.push_back(cells(row));
  if (has_what_ifs(scoreboard)) {
    rows.front().push_back("what would help most");
    for (std::size_t i = 0; i < scoreboard.rows.size(); ++i)
      rows[i + 1].push_back(help_text(scoreboard.rows[i]));
  }
  return columns_text(rows) + "\n" + summary_text("counted rows", summarise(scoreboard, true)) +
         summary_text("counted rows that served no fit", summarise(scoreboard, false));
}

std::string to_json(const Scoreboard& scoreboard) {
  Json published = Json::array();
  for (const ScoreRow& row : scoreboard.rows) published.push_back(json_of(row));
  Json measured = Json::array();
  for (const MeasuredBoard& board : scoreboard.measured)
    for (const Json& row : measured_rows(board)) measured.push_back(row);
  const Json document{{"published", std::move(published)}, {"measured", std::move(measured)}};
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report
