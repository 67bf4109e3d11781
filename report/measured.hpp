#pragma once
// Replays on GPUs that were measured, and their predictions, which are made anew each time: a file has a
// JSON line for each policy of each replay (docs/replay.md has the keys); here its scenario is planned
// again, folded onto as many GPUs, and predicted (report/gpu_prediction.hpp). error = predicted / median -
// 1. A row is held out where no constant was fitted to it: those of the policies and scenarios that
// `is_held_out` names, and of all others those whose text "SCENARIO SCALE POLICY" has an odd FNV-1a hash
// (64 bits), and all rows of graphs, which are predicted without the host's times. A row whose plan is no
// longer the one that ran (other launches or bytes) is shown and not summarised.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "hw/gpu_schedule.hpp"
#include "model/calibration.hpp"
#include "model/units.hpp"

namespace isthmus::report {

struct MeasuredRow {
  std::string scenario;                // its file, as it was given
  std::vector<std::string> overrides;  // key=value
  double scale = 1;
  std::string policy, backend, device, date;
  std::int64_t gpus = 0, ranks = 0, launches = 0;
  Bytes bytes;  // between GPUs, in one run
  bool byte_exact = false;
  bool graph = false;                           // the launches were one CUDA graph; an optional key
  double median = 0, fastest = 0, slowest = 0;  // seconds
  std::int64_t repetitions = 0;

  std::string name() const;  // of the scenario's file, without folder and extension
  friend bool operator==(const MeasuredRow&, const MeasuredRow&) = default;
};

bool is_held_out(const MeasuredRow& row);

/// One line of the file, with its end.
std::string record_line(const MeasuredRow& row);
/// Raises InputError with line and key; a last line without its end is refused.
std::vector<MeasuredRow> read_records(const std::filesystem::path& file);

/// A row with what its plan is now. A relative scenario is sought from the working folder on, then from each
/// folder above `file` on.
struct Replanned {
  MeasuredRow row;
  std::string refused;  // why there is no schedule
  std::optional<hw::GpuSchedule> schedule;
};
std::vector<Replanned> replan(const std::filesystem::path& file, unsigned threads = 2);

struct MeasuredPrediction {
  MeasuredRow row;
  std::string refused;
  bool changed = false;             // the plan is another one now
  std::optional<double> predicted;  // seconds

  std::optional<double> error() const;
};

struct MeasuredBoard {
  std::string calibration;
  std::vector<MeasuredPrediction> rows;
};
/// The calibration of the GPUs that the project's replays ran on.
inline constexpr std::string_view measured_calibration = "h200-nvlink";
/// A file's rows under a calibration, sought from the file's folder on.
MeasuredBoard predict_measured(const std::filesystem::path& file, std::string_view calibration);
MeasuredBoard predict_measured(const std::vector<Replanned>& rows, const Calibration& calibration,
                               const ReplayConstants& constants);

/// Over rows that are predicted, byte-exact and not changed. Large: 16 MiB and more between GPUs.
struct MeasuredSummary {
  std::size_t rows = 0;
  double median = 0, percentile_95 = 0, largest = 0;  // of the absolute errors
};
MeasuredSummary summarise(const MeasuredBoard& board, bool large, bool held_out);

/// The table a person reads; the JSON of docs/scoreboard.md; the section of docs/accuracy.md. All end with a
/// newline.
std::string to_table(const MeasuredBoard& board);
std::string to_json(const MeasuredBoard& board);
nlohmann::ordered_json measured_rows(const MeasuredBoard& board);
std::string measured_section(const MeasuredBoard& board);

}  // namespace isthmus::report
