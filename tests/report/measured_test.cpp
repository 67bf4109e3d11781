#include "report/measured.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "report/gpu_prediction.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::report {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path measured_file = project_folder() / "scenarios/measured/h200-x2.jsonl";

MeasuredRow pair_row() {
  MeasuredRow row;
  row.scenario = "scenarios/metal/pair-one-tensor.yaml";
  row.policy = "p2p";
  row.backend = "nccl";
  row.device = "2 x GPU";
  row.date = "2026-11-30";
  row.gpus = 2;
  row.ranks = 2;
  row.launches = 1;
  row.bytes = {1 << 30};
  row.byte_exact = true;
  row.median = 3e-3;
  row.fastest = 2.9e-3;
  row.slowest = 3.5e-3;
  row.repetitions = 21;
  return row;
}

MeasuredPrediction predicted_row(std::int64_t bytes, double error, const std::string& policy) {
  MeasuredPrediction row{pair_row(), "", false, std::nullopt};
  row.row.policy = policy;
  row.row.bytes = {bytes};
  row.predicted = row.row.median * (1 + error);
  return row;
}

class MeasuredFile : public ::testing::Test {
 protected:
  std::string fault(const std::string& text) {
    folder_.write("m.jsonl", text);
    try {
      read_records(folder_.path() / "m.jsonl");
    } catch (const InputError& error) {
      const std::string message = error.what();
      return message.substr(message.find("m.jsonl"));
    }
    return "";
  }
  std::string with(const std::string& key, const nlohmann::json& value) {
    auto json = nlohmann::ordered_json::parse(record_line(pair_row()));
    json[key] = value;
    return record_line(pair_row()) + json.dump() + "\n";
  }

  TemporaryFolder folder_;
};

RC_GTEST_FIXTURE_PROP(MeasuredFile, reads_back_what_was_recorded, ()) {
  MeasuredRow row = pair_row();
  row.scale = 1.0 / *rc::gen::inRange(1, 1000);
  row.overrides = {"refit.streams=" + std::to_string(*rc::gen::inRange(1, 99)), "fabric.note=\"a\nb\""};
  row.median = 1e-6 * *rc::gen::inRange(1, 1'000'000);
  row.byte_exact = *rc::gen::arbitrary<bool>();
  row.graph = *rc::gen::arbitrary<bool>();
  row.launches = *rc::gen::inRange<std::int64_t>(0, 1 << 20);
  EXPECT_EQ(fault(record_line(row) + record_line(pair_row())), "");
  RC_ASSERT(read_records(folder_.path() / "m.jsonl") == (std::vector<MeasuredRow>{row, pair_row()}));
}

TEST_F(MeasuredFile, faults_name_line_key_found_and_allowed) {
  EXPECT_EQ(fault(record_line(pair_row())), "");
  EXPECT_EQ(fault(""), "m.jsonl: found no lines; allowed: a line for each policy of a replay");
  std::string cut = record_line(pair_row());
  cut.pop_back();
  EXPECT_EQ(fault(record_line(pair_row()) + cut),
            "m.jsonl:2: found a last line without its end; allowed: complete lines");
  EXPECT_THAT(fault(record_line(pair_row()) + "{\n"), HasSubstr("m.jsonl:2"));
  EXPECT_EQ(fault(with("median_seconds", 0)),
            "m.jsonl:2: median_seconds: found 0; allowed: a number above 0");
  EXPECT_EQ(fault(with("launches", -1)), "m.jsonl:2: launches: found -1; allowed: a whole number from 0 on");
  EXPECT_EQ(fault(with("graph", 1)), "m.jsonl:2: graph: found 1; allowed: true or false");
  EXPECT_EQ(fault(with("byte_exact", 1)), "m.jsonl:2: byte_exact: found 1; allowed: true or false");
  EXPECT_THAT(fault(with("set", {"a"})), HasSubstr("m.jsonl:2: set: found \"a\"; allowed: KEY=VALUE"));
  EXPECT_THAT(fault(with("policy", "")), HasSubstr("m.jsonl:2: policy: found \"\"; allowed: a text"));
  EXPECT_THAT(fault(with("more", 1)), HasSubstr("m.jsonl:2: more: found an unknown key; allowed: scenario"));
  EXPECT_THAT(fault("{}\n"), HasSubstr("m.jsonl:1: scenario: found nothing"));
  EXPECT_THAT(fault("7\n"), HasSubstr("m.jsonl:1: found 7; allowed: an object"));
}

TEST_F(MeasuredFile, is_planned_again_from_scenarios_in_folders_above_it) {
  folder_.write("s/a.yaml",
                "tensor: {shape: [4096, 4096], dtype: bf16}\n"
                "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                "target: {mesh: [1], first_rank: 1, placements: [replicated]}\n"
                "fabric: {preset: dgx-h100, hosts: 1}\n");
  MeasuredRow row = pair_row();
  row.scenario = "s/a.yaml";
  row.bytes = {32 << 20};
  MeasuredRow unknown = row, host = row, other = row, refused = row;
  unknown.policy = "teleport";
  host.backend = "host";
  other.launches = 2;
  folder_.write("m/n/m.jsonl",
                record_line(row) + record_line(unknown) + record_line(host) + record_line(other));
  const Calibration calibration = read_calibration("h200-nvlink", project_folder() / "scenarios");
  const MeasuredBoard board =
      predict_measured(replan(folder_.path() / "m/n/m.jsonl"), calibration, *calibration.replay);
  EXPECT_TRUE(board.rows.at(0).predicted);
  EXPECT_FALSE(board.rows.at(0).changed);
  EXPECT_EQ(board.rows.at(1).refused, "no such policy");
  EXPECT_EQ(board.rows.at(2).refused, "not a replay on GPUs");
  EXPECT_TRUE(board.rows.at(3).changed);
  const std::string table = to_table(board);
  EXPECT_THAT(table, HasSubstr("no such policy"));
  EXPECT_THAT(table, HasSubstr("planned otherwise now"));
  EXPECT_THAT(measured_section(board), HasSubstr("| a | 1 | p2p | 33.55 MB | 1 | 3.000 ms |"));
  const nlohmann::json json = nlohmann::json::parse(to_json(board));
  EXPECT_EQ(json["measured"].size(), 4U);
  EXPECT_TRUE(json["measured"][1]["predicted_seconds"].is_null());
  EXPECT_EQ(json["measured"][3]["changed"], true);
}

TEST(Measured, summarises_by_size_and_use_and_leaves_out_what_did_not_run_as_planned) {
  MeasuredBoard board;
  for (int i = 1; i <= 20; ++i) board.rows.push_back(predicted_row(16 << 20, -0.01 * i, "golden"));
  board.rows.push_back(predicted_row((16 << 20) - 1, 0.5, "golden"));
  board.rows.push_back(predicted_row(1 << 30, 9, "golden"));
  board.rows.back().changed = true;
  board.rows.push_back(predicted_row(1 << 30, 9, "golden"));
  board.rows.back().row.byte_exact = false;
  const MeasuredSummary large = summarise(board, true, true);
  EXPECT_EQ(large.rows, 20U);
  EXPECT_NEAR(large.median, 0.10, 1e-9);
  EXPECT_NEAR(large.percentile_95, 0.19, 1e-9);
  EXPECT_NEAR(large.largest, 0.20, 1e-9);
  EXPECT_EQ(summarise(board, false, true).rows, 1U);
  EXPECT_EQ(summarise(board, true, false).rows, 0U);
}

TEST(Measured, rows_are_held_out_by_policy_by_scenario_and_by_hash) {
  MeasuredRow row = pair_row();
  row.policy = "golden";
  EXPECT_TRUE(is_held_out(row));
  row.policy = "p2p";
  row.scenario = "x/uneven-3-to-5.yaml";
  EXPECT_TRUE(is_held_out(row));
  std::size_t held_out = 0;
  for (int i = 0; i < 1000; ++i) {
    row.scenario = "x/s" + std::to_string(i) + ".yaml";
    held_out += is_held_out(row) ? 1U : 0U;
  }
  EXPECT_NEAR(static_cast<double>(held_out), 500, 60);
}

TEST(Measured, rows_of_graphs_are_predicted_without_the_host_and_held_out) {
  std::vector<Replanned> rows = replan(measured_file);
  const Calibration calibration = read_calibration(measured_calibration, project_folder() / "scenarios");
  const MeasuredBoard one_by_one = predict_measured(rows, calibration, *calibration.replay);
  for (Replanned& row : rows) row.row.graph = true;
  const MeasuredBoard graphs = predict_measured(rows, calibration, *calibration.replay);
  std::size_t shorter = 0;
  double with = 0, without = 0;  // single rows may take longer: copies queue up in another order
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(is_held_out(graphs.rows[i].row));
    if (!graphs.rows[i].predicted) continue;
    without += *graphs.rows[i].predicted;
    with += *one_by_one.rows[i].predicted;
    shorter += *graphs.rows[i].predicted < *one_by_one.rows[i].predicted ? 1U : 0U;
  }
  EXPECT_GT(shorter, rows.size() / 2);
  EXPECT_LT(without, with);
  EXPECT_EQ(summarise(graphs, true, false).rows + summarise(graphs, false, false).rows, 0U);
}

/// The gate: what the model is good for. Rows that no constant was fitted to.
TEST(Measured, large_held_out_rows_are_predicted_within_five_percent_in_the_median) {
  const MeasuredBoard board = predict_measured(measured_file, measured_calibration);
  const MeasuredSummary large = summarise(board, true, true), small = summarise(board, false, true);
  EXPECT_GE(large.rows, 40U);
  EXPECT_LE(large.median, 0.05);
  EXPECT_LE(small.median, 0.15);
}

TEST(Measured, fitted_constants_are_few_and_none_is_of_one_row) {
  const Calibration calibration = read_calibration(measured_calibration, project_folder() / "scenarios");
  int fitted = 0;
  for (const ReplayField& field : replay_fields())
    if ((*calibration.replay.*field.member).provenance == Provenance::fitted) ++fitted;
  EXPECT_LE(fitted, 6);
}

}  // namespace
}  // namespace isthmus::report
