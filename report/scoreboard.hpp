#pragma once
// Every published refit of a folder of scenarios, predicted: what others report, what the model says of the
// policy that the row ran, and how far apart they are (docs/scoreboard.md has the rule and the JSON keys).
// error: relative, signed, to the nearer end of the published range, 0 inside; midpoint_error: to its middle.
// Invariant: equal files give equal scoreboards, whatever the number of threads.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/fabric_spec.hpp"
#include "model/published.hpp"
#include "report/comparison.hpp"
#include "report/explain.hpp"
#include "report/measured.hpp"
#include "report/prediction_interval.hpp"
#include "report/shares.hpp"

namespace isthmus::report {

struct ScoreRow {
  Published published;
  std::string scenario;  // its name, and the stem of its file
  std::string calibration;
  double bound_seconds = 0;
  Bytes payload, live_bytes;          // of the refit; what the fullest target rank holds once it is loaded
  std::optional<Bytes> gpu_memory{};  // of a GPU as the fabric's preset has it, where known
  PolicyRow prediction;               // of the row's policy; refused where the row has none
  Shares shares;
  std::optional<PredictedInterval> interval;  // of counted and blind rows
  std::vector<PolicyRow> alternatives;        // of the other policies that the source leaves open
  std::vector<ChangeRow> what_ifs;            // fastest first, refused ones last; where asked for

  std::optional<double> error() const;
  std::optional<double> midpoint_error() const;
};

/// Rows ordered by id, numbers in it by value: X2 before X10.
struct Scoreboard {
  std::vector<ScoreRow> rows;
  std::vector<MeasuredBoard> measured;  // of the files measured/*.jsonl below the folder

  const ScoreRow* find(std::string_view id) const;  // nullptr when there is none
};

/// Off the nearer end of the row's range, relative to it; nullopt for a blind row.
std::optional<double> nearest_error(double seconds, const Published& row);

/// The rows of all whole refits and bare tensors in the folder, as their files have them, without a
/// prediction. Raises InputError for a folder without rows, an id that stands twice, an unknown policy.
Scoreboard read_scoreboard(const std::filesystem::path& folder);
/// The same with predictions. `threads` refits are predicted at a time.
Scoreboard predict_scoreboard(const std::filesystem::path& folder, unsigned threads = 2);

/// The memory of a GPU of the fabric's preset, from its datasheet; nullopt where no row has that preset, for
/// imported hosts and for joined parts.
std::optional<Bytes> gpu_memory(const FabricSpec& fabric);

/// Fills the rows' what_ifs (report/scoreboard_what_ifs.cpp): minutes for the project's scenarios.
void predict_what_ifs(Scoreboard& scoreboard, const std::filesystem::path& folder, unsigned threads = 2);
bool has_what_ifs(const Scoreboard& scoreboard);
/// The change that gains most; nullptr where none gains a per cent.
const ChangeRow* most_helpful(const ScoreRow& row);

/// Over the rows that are counted and predicted.
struct ScoreSummary {
  std::size_t rows = 0, within_tenth = 0, within_quarter = 0;
  std::size_t met = 0;             // whose published range meets the predicted interval
  double median = 0, largest = 0;  // of the absolute errors
};
ScoreSummary summarise(const Scoreboard& scoreboard, bool with_fitted_rows);

/// The table a person reads. Ends with a newline.
std::string to_table(const Scoreboard& scoreboard);
/// The JSON of docs/scoreboard.md, indented by two. Ends with a newline.
std::string to_json(const Scoreboard& scoreboard);

/// docs/accuracy.md and docs/blind-predictions.md. What rows are, without any prediction, is a text of its
/// own that the document ends with.
std::string accuracy_document(const Scoreboard& scoreboard);
std::string accuracy_rows(const Scoreboard& scoreboard);
/// What moves and what it takes on a GPU, of counted or of blind rows (report/scoreboard_memory.cpp).
std::string memory_section(const Scoreboard& scoreboard, bool blind);
std::string blind_document(const Scoreboard& scoreboard);
std::string blind_rows(const Scoreboard& scoreboard);

}  // namespace isthmus::report
