// Traffic scenarios as users run them: the command that predicts them, and those that refuse them.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class TrafficCommands : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    file_ =
        folder_
            .write("slow.yaml",
                   "fabric: {preset: dgx-h100, hosts: 2, edits: [{degrade: nic, hosts: 1, factor: 0.5}]}\n"
                   "traffic: {all-reduce: {gpus: 0-15}, published: [{id: a, ratio: 0.56, symptom: x, "
                   "source: y}]}\n")
            .string();
  }

  std::string file_;
};

TEST_F(TrafficCommands, simulate_prints_both_predictions_and_what_was_published) {
  const ProgramResult text = run("simulate " + file_);
  EXPECT_EQ(text.status, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("edited / healthy: 0.500\n"));
  EXPECT_THAT(text.output, HasSubstr("predicted 0.500: within 15 % (-11 %)"));
  const ProgramResult json = run("simulate --json " + file_);
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(nlohmann::json::parse(json.output)["ratio"], 0.5);
}

TEST_F(TrafficCommands, set_changes_a_traffic_scenario) {
  const ProgramResult result = run("simulate " + file_ + " --set fabric.edits.0.factor=0.25");
  EXPECT_THAT(result.output, HasSubstr("edited / healthy: 0.250\n"));
}

TEST_F(TrafficCommands, traces_and_series_of_links_are_for_plans) {
  EXPECT_EQ(run("simulate --trace t.json " + file_).status, 2);
  EXPECT_EQ(run("simulate --links --json " + file_).status, 2);
}

TEST_F(TrafficCommands, what_needs_a_plan_refuses_traffic) {
  const std::string reason =
      "found plain traffic, which has no plan and no bound; allowed: a refit or tensors";
  for (const std::string command : {"bound ", "verify "}) {
    const ProgramResult result = run(command + file_);
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_THAT(result.errors, HasSubstr("slow.yaml:2: traffic: " + reason)) << command;
    EXPECT_EQ(result.output, "");
  }
  const ProgramResult policy = run("simulate --policy p2p " + file_);
  EXPECT_EQ(policy.status, 2);
  EXPECT_EQ(policy.errors,
            "isthmus: --policy: found policies beside plain traffic, which has no plan; allowed: none "
            "of --policy, --max-seconds, --trace, --links, --report, --plot with traffic\n");
  EXPECT_EQ(run("simulate --max-seconds 1 " + file_).status, 2);
}

TEST_F(TrafficCommands, validate_judges_traffic_and_its_twin) {
  EXPECT_EQ(run("validate " + file_).output, "slow: valid\n");
  const ProgramResult result = run("validate " + file_ + " --set traffic.all-reduce.gpus=0-16");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("traffic: found GPU 16; allowed: GPUs of the fabric: 0 to 15"));
  const ProgramResult twin = run("validate " + file_ + " --set 'traffic.baseline={fabric.hosts: 1}'");
  EXPECT_EQ(twin.status, 1);
  EXPECT_THAT(twin.output, HasSubstr("traffic.baseline: found "));
}

}  // namespace
}  // namespace isthmus
