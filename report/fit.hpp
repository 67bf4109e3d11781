#pragma once
// Fits the calibration's `fitted` constants to published rows, and says how well that carries over.
// Every combination of a few values of each constant is simulated for every row that it acts in. The fit is
// the combination with the least mean |ln(seconds / nearest end of the published range)|; export and load,
// which no row tells apart, are one value.
// Rows that the wire alone makes slower than reported serve no fit: another plan ran there, and no time of
// software makes up for it.
// left out: each row's error under the fit to the other rows, or to the rows of other models.
// baseline: payload / rate + time x number of tensors, both constants fitted to the same rows.

#include <filesystem>
#include <string>
#include <vector>

namespace isthmus::report {

/// The figures of one way to predict, by row.
struct FitColumn {
  std::string name;
  std::vector<double> errors;  // relative, signed, to the nearer end
};

struct FitRow {
  std::string id, model;
  bool used = false;      // it serves the fit
  bool reachable = true;  // the wire alone is not slower
  double seconds_low = 0, seconds_high = 0;
};

struct FittedValue {
  std::string key;
  double before = 0, fitted = 0;  // seconds
};

struct Fit {
  std::vector<FittedValue> values;
  double baseline_rate = 0, baseline_time = 0;  // bytes per second, seconds per tensor
  std::vector<FitRow> rows;                     // the counted ones
  std::vector<FitColumn> columns;               // in-sample, left out, baseline
};

/// Simulates every counted row of the folder's scenarios under every combination: minutes.
Fit fit_constants(const std::filesystem::path& folder);
/// docs/fit.md.
std::string to_markdown(const Fit& fit);

}  // namespace isthmus::report
