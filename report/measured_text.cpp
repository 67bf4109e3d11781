// Measured replays beside their predictions, as a table and as a section of docs/accuracy.md.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/measured.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

std::string error_text(const MeasuredPrediction& row) {
  return row.error() ? fmt::format("{:+.1f} %", 100 * *row.error()) : "-";
}

std::string remark(const MeasuredPrediction& row) {
  if (!row.refused.empty()) return row.refused;
  if (!row.row.byte_exact) return "not byte-exact";
  if (row.changed) return "planned otherwise now";
  if (row.row.graph) return "held out; graph";
  return is_held_out(row.row) ? "held out" : "fit";
}

std::vector<std::string> cells(const MeasuredPrediction& row) {
  return {row.row.name(),
          fmt::format("{}", row.row.scale),
          row.row.policy,
          size_text(row.row.bytes),
          fmt::format("{}", row.row.launches),
          time_text(row.row.median),
          fmt::format("{:.0f} to {:.0f} %", 100 * (row.row.fastest / row.row.median - 1),
                      100 * (row.row.slowest / row.row.median - 1)),
          row.predicted ? time_text(*row.predicted) : "-",
          error_text(row),
          remark(row)};
}

std::vector<std::string> heads() {
  return {"scenario", "scale", "policy", "bytes", "launches", "median", "runs", "predicted", "error", "rows"};
}

struct SummaryKind {
  const char* name;
  bool large, held_out;
};
constexpr SummaryKind kinds[] = {{"16 MiB and more, held out", true, true},
                                 {"16 MiB and more, in the fit", true, false},
                                 {"smaller, held out", false, true},
                                 {"smaller, in the fit", false, false}};

}  // namespace

std::string to_table(const MeasuredBoard& board) {
  std::vector<std::vector<std::string>> table{heads()};
  for (const MeasuredPrediction& row : board.rows) table.push_back(cells(row));
  std::string text = columns_text(table) + "\n";
  for (const SummaryKind& kind : kinds) {
    const MeasuredSummary summary = summarise(board, kind.large, kind.held_out);
    text +=
        fmt::format("{}: {} rows; median error {}, 95th percentile {}, largest {}\n", kind.name, summary.rows,
                    percent(summary.median), percent(summary.percentile_95), percent(summary.largest));
  }
  return text + fmt::format("predicted under {}\n", board.calibration);
}

nlohmann::ordered_json measured_rows(const MeasuredBoard& board) {
  using Rows = nlohmann::ordered_json;
  const auto number = [](const std::optional<double>& value) { return value ? Rows(*value) : Rows(); };
  Rows rows = Rows::array();
  for (const MeasuredPrediction& row : board.rows) {
    Rows document = Rows::parse(record_line(row.row));
    document["calibration"] = board.calibration;
    document["predicted_seconds"] = number(row.predicted);
    document["error"] = number(row.error());
    document["held_out"] = is_held_out(row.row);
    document["changed"] = row.changed;
    if (!row.refused.empty()) document["refused"] = row.refused;
    rows.push_back(std::move(document));
  }
  return rows;
}

std::string to_json(const MeasuredBoard& board) {
  return nlohmann::ordered_json{{"measured", measured_rows(board)}}.dump(2) + "\n";
}

std::string measured_section(const MeasuredBoard& board) {
  std::string text = fmt::format(
      "## Replays on GPUs, predicted\n\nUnder `{}`, as [replay.md](replay.md#predictions-on-gpus) says. "
      "Error: "
      "of the prediction, against the median of the runs; *runs*: the fastest and the slowest against it.\n\n"
      "| rows | number | median error | 95th percentile | largest |\n| --- | --- | --- | --- | --- |\n",
      board.calibration);
  for (const SummaryKind& kind : kinds) {
    const MeasuredSummary summary = summarise(board, kind.large, kind.held_out);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", kind.name, summary.rows, percent(summary.median),
                        percent(summary.percentile_95), percent(summary.largest));
  }
  const std::vector<std::string> head = heads();
  text += fmt::format("\n| {} |\n|", fmt::join(head, " | "));
  for (std::size_t i = 0; i < head.size(); ++i) text += " --- |";
  text += "\n";
  for (const MeasuredPrediction& row : board.rows)
    text += fmt::format("| {} |\n", fmt::join(cells(row), " | "));
  return text;
}

}  // namespace isthmus::report
