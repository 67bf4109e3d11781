#pragma once
// A user's own run held against the prediction: where it fell behind, or got ahead, and which term of the
// cost model is responsible. Both sides are cut into cells: a tensor (or a whole stage), on a lane where
// the run tells lanes apart, from its first begin to its last end; of traces a cell is an operation. Times
// count from the first begin of what both have. With cells in the order in which they ended, lateness =
// measured end - predicted end, and
//     gap of a cell = its lateness - the largest lateness before it (or 0), where that is positive,
// so the gaps add up to the largest lateness. Likewise with the roles exchanged: gaps with a negative
// sign, where the prediction is the slower one. A gap opened while the cell ran, or before it began,
// whichever of the two differs more. Its term is the constant of the calibration without which that part
// of the prediction is shortened most; what moves the bytes, if no constant matters more than what remains
// without all of them. Invariant: each figure of a prediction is a simulation's.

#include <optional>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "report/observation.hpp"

namespace isthmus::report {

struct CellTimes {
  Instant begin, end;
};

struct Cell {
  int stage = 0;
  std::optional<TensorId> tensor{};
  std::string lane{};
  std::optional<std::uint32_t> operation{};
  CellTimes predicted, measured;
};

struct Gap {
  Cell cell;
  Duration size;        // below 0: the run was faster
  bool before = false;  // it began late (or early), rather than took long
  std::string term;     // "network wire", or the constant's key
};

struct GapReport {
  std::string scenario, policy, calibration, form;
  Duration predicted, measured;        // from the first begin to the last end of all cells
  std::size_t cells = 0;               // that both have
  std::vector<Cell> stages;            // what they make of each stage, ascending
  std::size_t only_measured = 0;       // cells that are not in the plan
  std::size_t only_predicted = 0;      // cells that the run does not show
  std::size_t ignored = 0;             // spans of the file that name no tensor
  std::vector<Gap> gaps;               // the largest first
  std::vector<std::string> tensors{};  // their names, by tensor

  double error() const;  // measured / predicted - 1
};

inline constexpr std::size_t shown_gaps = 3;

/// `most`: gaps that are kept. Raises InputError (at `file`) for a trace of another plan, a lane that the
/// plan has not, or a run of which nothing is in the plan.
GapReport find_gaps(const Refit& refit, const Plan& plan, const Calibration& calibration,
                    const Observation& observation, const std::string& file, std::size_t most = shown_gaps);

/// The table a person reads, or the JSON of docs/compare.md. Ends with a newline.
std::string gap_document(const GapReport& report, bool json);

}  // namespace isthmus::report
