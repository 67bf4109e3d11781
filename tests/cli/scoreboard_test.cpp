#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using testing::HasSubstr;

class ScoreboardCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    folder_.write("mine/a.yaml",
                  "tensor: {shape: [50000000], dtype: bf16}\n"
                  "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                  "target: {mesh: [1], first_rank: 8, placements: [replicated]}\n"
                  "fabric: {preset: dgx-h100, hosts: 2}\n"
                  "published:\n  - {id: A, policy: p2p, seconds: 0.001, source: x}\n"
                  "  - {id: B, policy: golden, source: y, remark: z}\n");
  }
  std::string mine() const { return "'" + (folder_.path() / "mine").string() + "'"; }
};

TEST_F(ScoreboardCommand, prints_a_row_per_published_refit_and_a_summary) {
  const ProgramResult result = run("scoreboard " + mine());
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("A      p2p    0.001 s   2.000 ms  +100 %"));
  EXPECT_THAT(result.output, HasSubstr("counted rows: 1; median error 100.0 %"));
}

TEST_F(ScoreboardCommand, json_is_the_only_thing_on_standard_output) {
  const ProgramResult result = run("scoreboard --json " + mine());
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(nlohmann::json::parse(result.output)["published"].size(), 2U);
  EXPECT_EQ(result.errors, "");
}

TEST_F(ScoreboardCommand, says_what_would_help_where_it_is_asked) {
  const ProgramResult result = run("scoreboard --what-if " + mine());
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("what would help most"));
  EXPECT_THAT(result.output, HasSubstr("policy balanced: "));
  EXPECT_THAT(run("scoreboard " + mine()).output, testing::Not(HasSubstr("what would help most")));
}

TEST_F(ScoreboardCommand, writes_its_documents_where_it_is_told) {
  const std::string there = folder_.path().string();
  const ProgramResult result = run("scoreboard --markdown -o '" + there + "' " + mine());
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(read_file(folder_.path() / "accuracy.md"), HasSubstr("| A | `p2p` | 0.001 s | 2.000 ms |"));
  EXPECT_THAT(read_file(folder_.path() / "blind-predictions.md"), HasSubstr("| B | `golden` |"));
}

TEST_F(ScoreboardCommand, predicts_measured_replays_anew) {
  folder_.write("m.jsonl",
                "{\"scenario\":\"mine/a.yaml\",\"set\":[],\"scale\":0.5,\"policy\":\"p2p\",\"backend\":"
                "\"nccl\",\"device\":\"x\",\"date\":\"2026-11-30\",\"gpus\":2,\"ranks\":2,\"launches\":1,"
                "\"bytes\":50000000,\"byte_exact\":true,\"median_seconds\":1e-3,\"fastest_seconds\":1e-3,"
                "\"slowest_seconds\":2e-3,\"repetitions\":3}\n");
  const std::string file = " --measured '" + (folder_.path() / "m.jsonl").string() + "'";
  const ProgramResult table = run("scoreboard" + file);
  EXPECT_EQ(table.status, 0) << table.errors;
  EXPECT_THAT(table.output, HasSubstr("predicted under h200-nvlink"));
  const ProgramResult json = run("scoreboard --json" + file);
  EXPECT_EQ(nlohmann::json::parse(json.output)["measured"].size(), 1U);
  const ProgramResult without = run("scoreboard --calibration wire-only" + file);
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.errors,
              HasSubstr("--calibration: found 'wire-only', which has no constants of replays"));
}

TEST_F(ScoreboardCommand, refuses_folders_without_rows_or_for_documents_in_one_line) {
  const ProgramResult nothing = run("scoreboard '" + folder_.path().string() + "/calibrations'");
  EXPECT_EQ(nothing.status, 2);
  const ProgramResult nowhere = run("scoreboard --markdown -o /nonexistent/folder " + mine());
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.errors,
              HasSubstr("--output: found '/nonexistent/folder'; allowed: an existing folder"));
}

}  // namespace
}  // namespace isthmus
