#include "report/fit.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "report/scoreboard.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::report {
namespace {

const std::filesystem::path project_scenarios = project_folder() / "scenarios";

std::string refit_scenario(const std::string& rows) {
  return fmt::format(
      "model: {{config: {}/models/qwen3-4b.json, dtype: bf16}}\nfabric: {{preset: dgx-h100-superpod, hosts: "
      "2, nic_bandwidth: 400 Gbit/s}}\ntrain: {{gpus: 8, tp: 1, pp: 1}}\ngenerate: {{gpus: 8, tp: 8, dp: "
      "1}}\nrefit: {{bulk: ffn, streams: 2}}\ncalibration: h100-ib400\npublished:\n{}",
      project_scenarios.string(), rows);
}

class FitFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(project_scenarios / "calibrations", folder_.path() / "calibrations");
  }
  Fit fit_of(const std::string& rows) {
    folder_.write("s.yaml", refit_scenario(rows));
    return fit_constants(folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(FitFolder, finds_the_constants_that_a_row_was_predicted_with) {
  // What the calibration itself predicts, to four digits, is matched by its own constants.
  folder_.write("s.yaml", refit_scenario("  - {id: A, policy: striped, seconds: 1, source: x}\n"));
  const double predicted = predict_scoreboard(folder_.path()).rows.at(0).prediction.seconds;
  const Fit fit = fit_of(fmt::format(
      "  - {{id: A, policy: striped, seconds: {:.4f}, source: x, used_for_fit: true}}\n", predicted));
  ASSERT_EQ(fit.rows.size(), 1U);
  EXPECT_TRUE(fit.rows[0].used);
  EXPECT_LT(std::abs(fit.columns.at(0).errors.at(0)), 0.02);
}

TEST_F(FitFolder, leaves_out_rows_that_the_wire_alone_makes_slower) {
  const Fit fit = fit_of(
      "  - {id: A, policy: striped, seconds: 0.001, source: x, used_for_fit: true}\n"
      "  - {id: B, policy: striped, seconds: 9, source: x, used_for_fit: true}\n"
      "  - {id: C, policy: striped, seconds: 9, source: x}\n");
  EXPECT_FALSE(fit.rows.at(0).used);
  EXPECT_FALSE(fit.rows.at(0).reachable);
  EXPECT_TRUE(fit.rows.at(1).used);
  EXPECT_FALSE(fit.rows.at(2).used);
  EXPECT_TRUE(fit.rows.at(2).reachable);
  EXPECT_THAT(to_markdown(fit), ::testing::HasSubstr("no: the wire alone is slower"));
}

/// The figures of the line of docs/fit.md that begins so.
std::vector<int> medians(const std::string& begin) {
  std::ifstream stream(project_folder() / "docs/fit.md");
  std::vector<int> figures;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(begin)) continue;
    std::istringstream cells(line.substr(begin.size()));
    for (std::string cell; std::getline(cells, cell, '|');) {
      if (cell.find_first_of("0123456789") != std::string::npos) figures.push_back(std::stoi(cell));
    }
  }
  return figures;
}

TEST(FitDocument, has_isthmus_beat_the_baseline_in_sample_and_left_out) {
  for (const char* rows : {"rows of the fit", "rows that served no fit", "all"}) {
    const std::vector<int> figures = medians(fmt::format("| **median, {}** |", rows));
    ASSERT_EQ(figures.size(), 6U) << rows;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(figures[i], figures[i + 3]) << rows << ", column " << i;
  }
}

}  // namespace
}  // namespace isthmus::report
