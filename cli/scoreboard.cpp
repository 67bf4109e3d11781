#include "report/scoreboard.hpp"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "model/text.hpp"
#include "report/measured.hpp"
#include "report/plot.hpp"

namespace isthmus::cli {
namespace {

/// The project's own scenarios: where calibrations of that name would be sought too.
std::filesystem::path scenario_folder(const std::optional<std::string>& given) {
  if (given) return *given;
  const char* installed = std::getenv("ISTHMUS_SCENARIOS");
  return installed != nullptr ? installed : "scenarios";
}

int write_documents(const report::Scoreboard& scoreboard, const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw InputError({"--output", 0, ""}, fmt::format("'{}'", printable(folder.string())),
                     "an existing folder");
  const auto accuracy = (folder / "accuracy.md").string(), blind = (folder / "blind-predictions.md").string();
  write_output(accuracy, accuracy_document(scoreboard));
  write_output(blind, blind_document(scoreboard));
  print(fmt::format("{}\n{}\n", accuracy, blind));
  return 0;
}

}  // namespace

int scoreboard(const ScoreboardOptions& options) {
  require_file("--plot", options.plot);
  if (options.measured) {
    const std::string_view name =
        options.calibration.empty() ? report::measured_calibration : options.calibration;
    const report::MeasuredBoard board = report::predict_measured(*options.measured, name);
    print(options.json ? to_json(board) : to_table(board));
    return 0;
  }
  const std::filesystem::path folder = std::filesystem::absolute(scenario_folder(options.folder));
  const std::filesystem::path documents =
      options.output ? std::filesystem::path(*options.output) : (folder / "..").lexically_normal() / "docs";
  report::Scoreboard scoreboard = report::predict_scoreboard(folder);
  if (options.what_if || options.markdown) report::predict_what_ifs(scoreboard, folder);
  if (options.plot) write_output(*options.plot, report::plot(scoreboard));
  if (options.markdown) return write_documents(scoreboard, documents);
  print(options.json ? to_json(scoreboard) : to_table(scoreboard));
  return 0;
}

}  // namespace isthmus::cli
