#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

class CompareCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    const auto text = read_file(project_folder() / "scenarios/cases/uneven-ceil.yaml");
    scenario_ = "'" + folder_.write("uneven.yaml", text).string() + "'";
  }
  std::string scenario_;
};

TEST_F(CompareCommand, reads_what_replay_traces) {
  const std::string trace = (folder_.path() / "run.json").string();
  ASSERT_EQ(run(fmt::format("replay --policy p2p --trace '{}' {}", trace, scenario_)).status, 0);
  const ProgramResult result = run(fmt::format("compare --json --measured '{}' {}", trace, scenario_));
  EXPECT_EQ(result.status, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["policy"], "p2p");
  EXPECT_EQ(json["form"], "trace");
  EXPECT_EQ(json["only_measured"], 0);
}

TEST_F(CompareCommand, asks_which_policy_ran_where_the_run_does_not_say) {
  const std::string table = folder_.write("run.csv", "stage,start_s,end_s\n0,0,1\n").string();
  const std::string arguments = fmt::format("compare --measured '{}' {}", table, scenario_);
  const ProgramResult refused = run(arguments);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("--policy: found nothing"), std::string::npos) << refused.errors;
  const ProgramResult words = run(arguments + " --policy golden --gaps 1");
  EXPECT_EQ(words.status, 0) << words.errors;
  EXPECT_NE(words.output.find("largest gaps"), std::string::npos) << words.output;
}

}  // namespace
}  // namespace isthmus
