#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/refit.hpp"
#include "report/scoreboard.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::report {
namespace {

using testing::HasSubstr;
using testing::Not;

class WhatIfRows : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(project_folder() / "scenarios/calibrations", folder_.path() / "calibrations");
    std::filesystem::create_directories(folder_.path() / "models");
    const std::filesystem::path model = project_folder() / "scenarios/models/qwen3-30b-a3b.json";
    std::filesystem::copy(model, folder_.path() / "models/qwen3-30b-a3b.json");
  }
  void write(const std::string& rows) {
    folder_.write(
        "s.yaml",
        "name: s\nmodel: {config: models/qwen3-30b-a3b.json, layers: 8}\nfabric: {preset: dgx-h100, "
        "hosts: 4}\ntrain: {gpus: 16, tp: 2, ep: 4, etp: 1, pp: 4}\ngenerate: {gpus: 16, tp: 4}\n"
        "calibration: h100-ib400\npublished:\n" +
            rows);
  }
  Scoreboard predicted(unsigned threads = 2) const {
    Scoreboard scoreboard = predict_scoreboard(folder_.path(), threads);
    predict_what_ifs(scoreboard, folder_.path(), threads);
    return scoreboard;
  }
  double simulated(const ChangeRow& change) const {
    const Scenario scenario = read_scenario(folder_.path() / "s.yaml", change.settings);
    const Calibration calibration = read_calibration(scenario.calibration, folder_.path());
    return compare(resolve(scenario), {}, calibration, {change.policy}).policies.front().seconds;
  }
  static const ChangeRow* find(const ScoreRow& row, std::string_view what) {
    for (const ChangeRow& change : row.what_ifs)
      if (change.what == what) return &change;
    return nullptr;
  }

  TemporaryFolder folder_;
};

TEST_F(WhatIfRows, are_what_simulate_predicts_with_the_same_settings_fastest_first) {
  write("  - {id: A, policy: striped, seconds: 1, source: x}\n");
  const ScoreRow row = predicted().rows.at(0);
  ASSERT_GE(row.what_ifs.size(), 7U);
  double before = 0;
  for (const ChangeRow& change : row.what_ifs) {
    ASSERT_EQ(change.refused, "") << change.what;
    EXPECT_EQ(change.seconds, simulated(change)) << change.what;
    EXPECT_GE(change.seconds, before) << change.what;
    before = change.seconds;
  }
  ASSERT_NE(most_helpful(row), nullptr);
  EXPECT_EQ(most_helpful(row)->what, row.what_ifs.front().what);
}

TEST_F(WhatIfRows, try_streams_all_tensors_links_and_balanced_but_nothing_that_takes_away) {
  write("  - {id: A, policy: striped, seconds: 1, source: x}\n");
  const ScoreRow row = predicted().rows.at(0);
  for (const char* what : {"one more stream", "a stream for every stage", "all tensors by reshard",
                           "one more packet in flight", "NVLink twice as fast", "policy balanced"})
    EXPECT_NE(find(row, what), nullptr) << what;
  for (const ChangeRow& change : row.what_ifs) {
    EXPECT_THAT(change.what, Not(HasSubstr("down"))) << "a fault";
    EXPECT_NE(change.kind, ChangeKind::layout) << "only where the layout is assumed";
  }
}

TEST_F(WhatIfRows, of_blind_rows_have_other_generation_layouts_that_never_count_as_help) {
  write("  - {id: A, policy: striped, source: x}\n");
  const Scoreboard scoreboard = predicted();
  const ScoreRow& row = scoreboard.rows.at(0);
  EXPECT_NE(find(row, "generation TP2, DP8"), nullptr);
  EXPECT_NE(find(row, "generation TP8, DP2"), nullptr);
  EXPECT_NE(most_helpful(row)->kind, ChangeKind::layout);
  EXPECT_TRUE(row.interval) << "a blind row has an interval";
  EXPECT_GT(row.shares.datasheet, 0);
  const std::string document = blind_document(scoreboard);
  EXPECT_THAT(document, HasSubstr("## What the assumptions are worth"));
  EXPECT_THAT(document, HasSubstr("generation TP8, DP2"));
}

TEST_F(WhatIfRows, are_the_same_on_any_number_of_threads_and_shared_by_rows_of_one_refit) {
  write(
      "  - {id: A, policy: striped, seconds: 1, source: x}\n"
      "  - {id: B, policy: gather-broadcast, seconds: 1, source: x}\n");
  const Scoreboard one = predicted(1);
  EXPECT_EQ(to_json(one), to_json(predicted(3)));
  EXPECT_EQ(find(one.rows.at(0), "policy balanced")->seconds,
            find(one.rows.at(1), "policy balanced")->seconds);
  EXPECT_EQ(find(one.rows.at(1), "policy striped")->seconds, one.rows.at(0).prediction.seconds);
}

TEST_F(WhatIfRows, stand_in_table_json_and_documents_where_they_were_asked_for) {
  write("  - {id: A, policy: striped, seconds: 1, source: x}\n");
  const Scoreboard with = predicted(), without = predict_scoreboard(folder_.path());
  EXPECT_THAT(to_table(with), HasSubstr("what would help most"));
  EXPECT_THAT(to_table(without), Not(HasSubstr("what would help most")));
  EXPECT_THAT(accuracy_document(with), HasSubstr("## What would help most"));
  EXPECT_THAT(accuracy_document(without), Not(HasSubstr("## What would help most")));
  const nlohmann::json row = nlohmann::json::parse(to_json(with))["published"][0];
  for (const nlohmann::json& change : row["what_ifs"]) {
    const double gain = change["gain_seconds"], then = change["predicted_seconds"];
    EXPECT_NEAR(gain + then, row["predicted_seconds"], 1e-12) << change["what"];
  }
  EXPECT_TRUE(nlohmann::json::parse(to_json(without))["published"][0]["what_ifs"].is_null());
}

}  // namespace
}  // namespace isthmus::report
