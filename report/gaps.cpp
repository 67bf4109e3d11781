#include "report/gaps.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "planner/operations.hpp"
#include "report/operation_tensors.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

constexpr std::uint32_t any = std::numeric_limits<std::uint32_t>::max();

struct CellKey {
  int stage = 0;
  std::uint32_t tensor = any;
  std::uint32_t lane = any;
  std::uint32_t operation = any;
  friend auto operator<=>(const CellKey&, const CellKey&) = default;
};

using CellMap = std::map<CellKey, CellTimes>;

void widen(CellMap& cells, const CellKey& key, Instant begin, Instant end) {
  const auto [found, added] = cells.try_emplace(key, CellTimes{begin, end});
  if (added) return;
  found->second.begin = std::min(found->second.begin, begin);
  found->second.end = std::max(found->second.end, end);
}

class GapFinder {
 public:
  GapFinder(const Refit& refit, const Plan& plan, const Calibration& calibration,
            const Observation& observation, const std::string& file)
      : refit_(refit),
        plan_(plan),
        calibration_(calibration),
        observation_(observation),
        file_(file),
        operations_(expand(refit, plan)),
        tensors_(tensors_of(plan, operations_)),
        simulator_(refit, operations_) {
    by_operation_ = observation.form == ObservedForm::trace;
    by_tensor_ = by_operation_ || observation.spans.front().tensor;
    by_lane_ = by_operation_ || !observation.spans.front().lane.empty();
  }

  GapReport run(std::size_t most) {
    GapReport report;
    report.scenario = refit_.name;
    report.policy = plan_.policy;
    report.calibration = calibration_.name;
    report.form = to_string(observation_.form);
    report.ignored = observation_.ignored;
    for (const RefitEntry& entry : refit_.tensors) report.tensors.push_back(entry.tensor.name);
    CellMap measured = measured_cells();
    CellMap predicted = predicted_cells(calibration_);
    report.only_measured =
        std::erase_if(measured, [&](const auto& each) { return !predicted.contains(each.first); });
    report.only_predicted =
        std::erase_if(predicted, [&](const auto& each) { return !measured.contains(each.first); });
    if (measured.empty())
      throw InputError({file_, 0, ""}, "spans of which none is in the plan",
                       "spans of tensors, stages and lanes that it moves");
    report.measured = rebase(measured);
    report.predicted = rebase(predicted);
    fill(measured, predicted, report);
    find(report, most);
    return report;
  }

 private:
  CellKey key(TensorId tensor, std::uint32_t operation) const {
    return {refit_.tensors[tensor.index()].stage, by_tensor_ ? tensor.value : any,
            by_lane_ ? operations_.list[operation].lane.value : any, by_operation_ ? operation : any};
  }

  CellMap cells_of(const std::vector<Span>& spans) const {
    CellMap cells;
    for (std::uint32_t i = 0; i < spans.size(); ++i) add_operation(i, spans[i].ready, spans[i].end, cells);
    return cells;
  }

  void add_operation(std::uint32_t operation, Instant begin, Instant end, CellMap& cells) const {
    for (const TensorId tensor : tensors_[operation]) {
      widen(cells, key(tensor, operation), begin, end);
      if (by_operation_) return;  // its first tensor names it
    }
  }

  CellMap predicted_cells(const Calibration& calibration) const {
    return cells_of(simulator_.run(calibration).timeline.spans);
  }

  CellMap measured_cells() const {
    CellMap cells;
    if (observation_.form == ObservedForm::trace) {
      if (observation_.policy != plan_.policy || observation_.operations != operations_.list.size()) {
        throw InputError(
            {file_, 0, "otherData"},
            fmt::format("a trace of {} operations by '{}'", observation_.operations,
                        printable(observation_.policy)),
            fmt::format("one of this plan: {} operations by {}", operations_.list.size(), plan_.policy));
      }
    }
    for (const ObservedSpan& span : observation_.spans) add_span(span, cells);
    return cells;
  }

  void add_span(const ObservedSpan& span, CellMap& cells) const {
    if (span.operation) {
      if (*span.operation >= operations_.list.size())
        throw InputError({file_, 0, "operation"}, fmt::format("{}", *span.operation),
                         fmt::format("less than {}", operations_.list.size()));
      add_operation(*span.operation, span.begin, span.end, cells);
      return;
    }
    CellKey key;
    if (span.tensor) {
      key.tensor = span.tensor->value;
      key.stage = refit_.tensors[span.tensor->index()].stage;
    }
    if (span.stage) key.stage = *span.stage;
    if (by_lane_) key.lane = lane_of(span.lane);
    widen(cells, key, span.begin, span.end);
  }

  std::uint32_t lane_of(const std::string& name) const {
    for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      if (plan_.lanes[lane].name == name) return lane;
    }
    std::string allowed;
    for (const Lane& lane : plan_.lanes) allowed += (allowed.empty() ? "" : ", ") + lane.name;
    throw InputError({file_, 0, "lane"}, fmt::format("'{}'", printable(name)), printable(allowed, 200));
  }

  /// The first begin becomes 0; from there to the last end.
  static Duration rebase(CellMap& cells) {
    Instant first = cells.begin()->second.begin, last = cells.begin()->second.end;
    for (const auto& [unused, times] : cells) first = std::min(first, times.begin);
    for (auto& [unused, times] : cells) {
      times = {Instant{} + (times.begin - first), Instant{} + (times.end - first)};
      last = std::max(last, times.end);
    }
    return last - Instant{};
  }

  void fill(const CellMap& measured, const CellMap& predicted, GapReport& report) {
    std::map<int, Cell> stages;
    for (const auto& [key, times] : measured) {
      Cell cell;
      cell.stage = key.stage;
      if (key.tensor != any) cell.tensor = TensorId{key.tensor};
      if (key.lane != any) cell.lane = plan_.lanes[key.lane].name;
      if (key.operation != any) cell.operation = key.operation;
      cell.predicted = predicted.at(key);
      cell.measured = times;
      keys_.push_back(key);
      cells_.push_back(cell);
      cell.tensor.reset();
      cell.operation.reset();
      cell.lane.clear();
      const auto [stage, added] = stages.try_emplace(key.stage, cell);
      if (!added) join(cell, stage->second);
    }
    for (const auto& [unused, stage] : stages) report.stages.push_back(stage);
    report.cells = cells_.size();
  }

  static void join(const Cell& cell, Cell& all) {
    for (const auto side : {&Cell::predicted, &Cell::measured}) {
      (all.*side).begin = std::min((all.*side).begin, (cell.*side).begin);
      (all.*side).end = std::max((all.*side).end, (cell.*side).end);
    }
  }

  /// Records of lateness, either way; then what is responsible for the largest.
  void find(GapReport& report, std::size_t most) const {
    std::vector<Found> found = records(&Cell::measured, &Cell::predicted, 1);
    const std::vector<Found> ahead = records(&Cell::predicted, &Cell::measured, -1);
    found.insert(found.end(), ahead.begin(), ahead.end());
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.size > b.size; });
    found.resize(std::min(found.size(), most));
    for (const Found& each : found) {
      const Cell& cell = cells_[each.cell];
      const Duration longer =
          (cell.measured.end - cell.measured.begin) - (cell.predicted.end - cell.predicted.begin);
      const bool before = 2 * each.sign * longer.value < each.size.value;
      report.gaps.push_back({cell, {each.sign * each.size.value}, before, ""});
    }
    name_terms(found, report);
  }

  struct Found {
    std::size_t cell = 0;
    Duration size;
    int sign = 1;
  };

  std::vector<Found> records(CellTimes Cell::*late, CellTimes Cell::*other, int sign) const {
    std::vector<std::size_t> order(cells_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return (cells_[a].*late).end < (cells_[b].*late).end;
    });
    std::vector<Found> found;
    Duration largest;
    for (const std::size_t i : order) {
      const Duration lateness = (cells_[i].*late).end - (cells_[i].*other).end;
      if (lateness <= largest) continue;
      found.push_back({i, {lateness.value - largest.value}, sign});
      largest = lateness;
    }
    return found;
  }

  /// The predicted part of a cell in which its gap lies.
  Duration part(const CellMap& cells, std::size_t cell, bool before) const {
    const CellTimes& times = cells.at(keys_[cell]);
    return before ? times.begin - Instant{} : times.end - times.begin;
  }

  void name_terms(const std::vector<Found>& found, GapReport& report) const {
    if (found.empty()) return;
    const CellMap all = predicted_cells(calibration_), wire = predicted_cells(wire_only());
    std::vector<Duration> most(found.size());
    for (std::size_t g = 0; g < found.size(); ++g) {
      most[g] = part(wire, found[g].cell, report.gaps[g].before);
      report.gaps[g].term = wire_of(keys_[found[g].cell]);
    }
    for (const ConstantField& field : calibration_fields()) {
      const std::optional<Calibration> ideal = without(field);
      if (!ideal) continue;
      const CellMap cells = predicted_cells(*ideal);
      for (std::size_t g = 0; g < found.size(); ++g) {
        const bool before = report.gaps[g].before;
        const Duration gain{part(all, found[g].cell, before).value -
                            part(cells, found[g].cell, before).value};
        if (gain <= most[g]) continue;
        most[g] = gain;
        report.gaps[g].term = field.key;
      }
    }
  }

  /// With a constant at its ideal; none where it is there already.
  std::optional<Calibration> without(const ConstantField& field) const {
    Calibration ideal = calibration_;
    const double best = (wire_only().*field.member).value;
    double& value = (ideal.*field.member).value;
    if (value == best) return std::nullopt;
    value = best;
    return ideal;
  }

  /// What moves the bytes of a cell: the slowest that any of its operations needs.
  std::string wire_of(const CellKey& wanted) const {
    std::string_view wire = "memory";
    for (std::uint32_t i = 0; i < operations_.list.size(); ++i) {
      const bool of_cell = std::any_of(tensors_[i].begin(), tensors_[i].end(),
                                       [&](TensorId tensor) { return key(tensor, i) == wanted; });
      if (!of_cell) continue;
      const std::string_view carrier = carrier_of(refit_, operations_, i);
      if (carrier == "network wire" || wire == "memory") wire = carrier;
    }
    return std::string(wire);
  }

  const Refit& refit_;
  const Plan& plan_;
  const Calibration& calibration_;
  const Observation& observation_;
  const std::string& file_;
  Operations operations_;
  std::vector<std::vector<TensorId>> tensors_;
  sim::Simulator simulator_;
  bool by_operation_ = false, by_tensor_ = false, by_lane_ = false;
  std::vector<Cell> cells_;
  std::vector<CellKey> keys_;  // of them
};

}  // namespace

double GapReport::error() const {
  return predicted.value > 0 ? seconds(measured) / seconds(predicted) - 1 : 0;
}

GapReport find_gaps(const Refit& refit, const Plan& plan, const Calibration& calibration,
                    const Observation& observation, const std::string& file, std::size_t most) {
  return GapFinder(refit, plan, calibration, observation, file).run(most);
}

}  // namespace isthmus::report
