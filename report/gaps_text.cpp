#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/gaps.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

std::string cell_text(const GapReport& report, const Cell& cell) {
  std::string text = cell.tensor
                         ? fmt::format("{} (stage {}", report.tensors[cell.tensor->index()], cell.stage)
                         : fmt::format("stage {}", cell.stage);
  if (!cell.lane.empty()) text += fmt::format(", lane {}", cell.lane);
  return cell.tensor ? text + ")" : text;
}

std::string gap_text(const GapReport& report, const Gap& gap) {
  const Cell& cell = gap.cell;
  const auto took = [](const CellTimes& times) { return time_text(seconds(times.end - times.begin)); };
  const auto began = [](const CellTimes& times) { return time_text(seconds(times.begin)); };
  const std::string where =
      gap.before ? fmt::format("began at {} instead of {}", began(cell.measured), began(cell.predicted))
                 : fmt::format("took {} instead of {}", took(cell.measured), took(cell.predicted));
  return fmt::format("  {}{}  {}: {}; {}\n", gap.size.value < 0 ? "-" : "+",
                     time_text(std::abs(seconds(gap.size))), cell_text(report, cell), where, gap.term);
}

std::string to_text(const GapReport& report) {
  std::string text = fmt::format("{} by {}, measured ({}) against the prediction under {}\n", report.scenario,
                                 report.policy, report.form, report.calibration);
  text += fmt::format("measured {}, predicted {}: {:+.1f} %\n", time_text(seconds(report.measured)),
                      time_text(seconds(report.predicted)), 100 * report.error());
  text += fmt::format(
      "{} cells compared; {} of the run are not in the plan, {} of the plan not in the run; {} spans name no "
      "tensor\n\n",
      report.cells, report.only_measured, report.only_predicted, report.ignored);
  std::vector<std::vector<std::string>> rows{{"stage", "measured until", "predicted until", "late by"}};
  for (const Cell& stage : report.stages) {
    const double late = seconds(stage.measured.end - stage.predicted.end);
    rows.push_back({fmt::format("{}", stage.stage), time_text(seconds(stage.measured.end)),
                    time_text(seconds(stage.predicted.end)),
                    (late < 0 ? "-" : "") + time_text(std::abs(late))});
  }
  text += columns_text(rows);
  if (report.gaps.empty()) return text + "\nno gap: every cell ends when it was predicted to\n";
  text += "\nlargest gaps, with the term responsible:\n";
  for (const Gap& gap : report.gaps) text += gap_text(report, gap);
  return text;
}

void add_times(const Cell& cell, Json& json) {
  json["measured_begin_seconds"] = seconds(cell.measured.begin);
  json["measured_end_seconds"] = seconds(cell.measured.end);
  json["predicted_begin_seconds"] = seconds(cell.predicted.begin);
  json["predicted_end_seconds"] = seconds(cell.predicted.end);
}

Json cell_json(const GapReport& report, const Cell& cell) {
  Json json{{"stage", cell.stage}};
  json["tensor"] = cell.tensor ? Json(report.tensors[cell.tensor->index()]) : Json(nullptr);
  json["lane"] = cell.lane.empty() ? Json(nullptr) : Json(cell.lane);
  json["operation"] = cell.operation ? Json(*cell.operation) : Json(nullptr);
  add_times(cell, json);
  return json;
}

std::string to_json(const GapReport& report) {
  Json json{{"scenario", report.scenario},
            {"policy", report.policy},
            {"calibration", report.calibration},
            {"form", report.form},
            {"measured_seconds", seconds(report.measured)},
            {"predicted_seconds", seconds(report.predicted)},
            {"error", report.error()},
            {"cells", report.cells},
            {"only_measured", report.only_measured},
            {"only_predicted", report.only_predicted},
            {"ignored", report.ignored}};
  Json gaps = Json::array(), stages = Json::array();
  for (const Gap& gap : report.gaps) {
    Json each = cell_json(report, gap.cell);
    each["seconds"] = seconds(gap.size);
    each["opened"] = gap.before ? "before" : "during";
    each["term"] = gap.term;
    gaps.push_back(std::move(each));
  }
  for (const Cell& stage : report.stages) {
    stages.push_back({{"stage", stage.stage}});
    add_times(stage, stages.back());
  }
  json["stages"] = std::move(stages);
  json["gaps"] = std::move(gaps);
  return json.dump(2) + "\n";
}

}  // namespace

std::string gap_document(const GapReport& report, bool json) {
  return json ? to_json(report) : to_text(report);
}

}  // namespace isthmus::report
