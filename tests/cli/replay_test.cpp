// isthmus replay on the command line.

#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class ReplayCommand : public ProgramTest {
 protected:
  std::string scenario() const {
    folder_.write("s.yaml", bare_tensor);
    return (folder_.path() / "s.yaml").string();
  }
};

TEST_F(ReplayCommand, replays_a_scenario_on_the_host_and_says_that_every_byte_is_right) {
  const ProgramResult text = run("replay " + scenario() + " --backend host --repeat 2 --predict");
  EXPECT_EQ(text.status, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("byte-exact"));
  EXPECT_THAT(text.output, HasSubstr("predicted"));
  const Json document = Json::parse(run("replay " + scenario() + " --policy p2p,striped --json").output);
  EXPECT_EQ(document["byte_exact"], true);
  EXPECT_EQ(document["policies"].size(), 2U);
  EXPECT_EQ(document["policies"][0]["predicted_seconds"], nullptr);
}

TEST_F(ReplayCommand, replays_a_plan_file_which_says_itself_what_moves) {
  const std::string plan = (folder_.path() / "p.json").string();
  ASSERT_EQ(run("plan " + scenario() + " --policy p2p -o " + plan).status, 0);
  const ProgramResult result = run("replay " + plan);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("p2p"));
  for (const char* option : {"--scale 0.5", "--policy p2p", "--set refit.streams=2"}) {
    const ProgramResult refused = run(fmt::format("replay {} {}", plan, option));
    EXPECT_EQ(refused.status, 2) << option;
    EXPECT_THAT(refused.errors, HasSubstr("beside a plan file"));
  }
}

TEST_F(ReplayCommand, writes_a_trace_of_what_it_measured) {
  const std::string trace = (folder_.path() / "trace.json").string(),
                    plan = (folder_.path() / "p.json").string();
  ASSERT_EQ(run("replay " + scenario() + " --policy p2p,striped --trace " + trace).status, 0);
  const Json first = Json::parse(read_file(trace));
  EXPECT_THAT(first["otherData"]["timeline"].get<std::string>(), HasSubstr("measured on host"));
  EXPECT_GT(first["traceEvents"].size(), 3U);
  ASSERT_EQ(run("plan " + scenario() + " --policy p2p -o " + plan).status, 0);
  ASSERT_EQ(run("replay " + plan + " --trace " + trace).status, 0);
  EXPECT_EQ(Json::parse(read_file(trace))["otherData"]["policy"], "p2p");
}

TEST_F(ReplayCommand, predicts_gpus_only_under_a_calibration_that_knows_replays) {
  const ProgramResult result =
      run("replay " + scenario() + " --backend nccl --predict --set calibration=wire-only");
  EXPECT_EQ(result.status, 2);
  const bool built = result.errors.find("built without") == std::string::npos;
  EXPECT_THAT(result.errors, HasSubstr(built ? "found 'wire-only', which has no constants of replays on GPUs"
                                             : "--backend: found 'nccl'"));
}

TEST_F(ReplayCommand, records_a_line_for_each_policy_and_nothing_half) {
  const std::filesystem::path file = folder_.path() / "runs.jsonl";
  const std::string command = "replay '" + scenario() + "' --scale 0.5 --repeat 3 --record '" +
                              file.string() + "' --policy golden,p2p --set calibration=wire-only";
  ASSERT_EQ(run(command).status, 0);
  ASSERT_EQ(run(command).status, 0);
  std::istringstream lines(read_file(file));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const nlohmann::json row = nlohmann::json::parse(line);
    EXPECT_EQ(row["policy"], count % 2 == 0 ? "golden" : "p2p");
    EXPECT_EQ(row["scenario"], scenario());
    EXPECT_EQ(row["set"], nlohmann::json::array({"calibration=wire-only"}));
    EXPECT_EQ(row["scale"], 0.5);
    EXPECT_EQ(row["repetitions"], 3);
    EXPECT_EQ(row["byte_exact"], true);
    EXPECT_LE(row["fastest_seconds"], row["median_seconds"]);
    EXPECT_LE(row["median_seconds"], row["slowest_seconds"]);
  }
  EXPECT_EQ(count, 4);
  folder_.write("cut.jsonl", "{");
  const ProgramResult cut =
      run("replay '" + scenario() + "' --record '" + (folder_.path() / "cut.jsonl").string() + "'");
  EXPECT_EQ(cut.status, 2);
  EXPECT_THAT(cut.errors, HasSubstr("whose last line has no end; allowed: a file of complete lines"));
  EXPECT_EQ(read_file(folder_.path() / "cut.jsonl"), "{");
}

TEST_F(ReplayCommand, has_exit_statuses_for_verdicts_and_for_bad_usage) {
  EXPECT_EQ(run("replay " + scenario() + " --policy p2p --tolerance 1e8").status, 0);
  const ProgramResult gate = run("replay " + scenario() + " --policy p2p --tolerance 0");
  EXPECT_EQ(gate.status, 1);
  EXPECT_THAT(gate.errors, HasSubstr("--tolerance"));
  EXPECT_EQ(run("replay " + scenario() + " --scale 0").status, 2);
  EXPECT_EQ(run("replay " + scenario() + " --repeat 0").status, 2);
  EXPECT_EQ(run("replay " + scenario() + " --policy teleport").status, 2);
  const ProgramResult graph = run("replay " + scenario() + " --graph");
  EXPECT_EQ(graph.status, 2);
  EXPECT_THAT(graph.errors, HasSubstr("--graph: found --backend host beside it; allowed: --backend nccl"));
  const ProgramResult unknown = run("replay " + scenario() + " --backend pigeon");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("allowed: host"));
}

}  // namespace
}  // namespace isthmus
