// `isthmus step` as users run it.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

const std::string example = (project_folder() / "scenarios/steps/qwen3-30b-a3b-h100.yaml").string();

class StepCommand : public ProgramTest {};

TEST_F(StepCommand, prints_policies_schedules_and_budgets) {
  const ProgramResult result = run("step " + example + " --policy striped,p2p --ctas 8,0");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("16 training and 16 generation GPUs, synchronous"));
  EXPECT_THAT(result.output, HasSubstr("other schedules, striped:"));
  EXPECT_THAT(result.output, HasSubstr("asynchronous, staleness unbounded, generate"));
  EXPECT_THAT(result.output, HasSubstr("no SMs"));
}

TEST_F(StepCommand, prints_json_alone) {
  const ProgramResult result = run("step " + example + " --policy striped --ctas 8 --json");
  EXPECT_EQ(result.status, 0) << result.errors;
  const nlohmann::json json = nlohmann::json::parse(result.output);
  const nlohmann::json& row = json["policies"][0];
  const double sum = 40 + 8 + 25 + row["refit_seconds"].get<double>();
  EXPECT_NEAR(row["step_seconds"], sum, 1e-9);
  EXPECT_EQ(json["budgets"].size(), 1U);
}

TEST_F(StepCommand, takes_settings) {
  const ProgramResult result =
      run("step " + example + " --policy striped --ctas 0 --json --set step.schedule=asynchronous" +
          " --set step.during_refit=stop --set step.train_time='1 s'");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(nlohmann::json::parse(result.output)["during_refit"], "stop");
}

TEST_F(StepCommand, refuses_a_scenario_without_step_in_one_line) {
  const auto plain = project_folder() / "scenarios/qwen3-30b-a3b-h100.yaml";
  const ProgramResult result = run("step " + plain.string());
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors,
              HasSubstr("step: found no such key; allowed: a scenario of a whole refit with step"));
  const ProgramResult bad = run("step " + example + " --set step.staleness=2");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.errors, HasSubstr("--set step.staleness=2"));
  const ProgramResult endless = run("step " + example + " --policy striped --set step.steps=10000" +
                                    " --set step.rollout_time='100000 s'");
  EXPECT_EQ(endless.status, 2);
  EXPECT_THAT(endless.errors, HasSubstr("--set step.steps=10000: step.steps: found 10000 steps of up to"));
}

}  // namespace
}  // namespace isthmus
