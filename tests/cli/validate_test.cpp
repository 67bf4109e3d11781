// `isthmus validate` as its users run it, and recipes handed to the other commands.

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class Validate : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    folder_.write("base.yaml",
                  "policy:\n  precision: bfloat16\n  megatron_cfg: {enabled: true}\n"
                  "  generation: {backend: vllm, colocated: {enabled: true}}\n");
    recipe_ = folder_
                  .write("recipe.yaml",
                         "defaults: base.yaml\n"
                         "policy:\n"
                         "  megatron_cfg: {pipeline_model_parallel_size: 61, expert_model_parallel_size: 8}\n"
                         "  generation:\n"
                         "    colocated: {enabled: false, resources: {num_nodes: 1}}\n"
                         "    vllm_cfg: {tensor_parallel_size: 8}\n"
                         "cluster: {gpus_per_node: 8, num_nodes: 62}\n")
                  .string();
  }

  std::string recipe_;
  const std::string scenario_ = (project_folder() / "scenarios/deepseek-v3-h100.yaml").string();
  const std::string model_ = "--model " + (project_folder() / "scenarios/models/deepseek-v3.json").string();
};

TEST_F(Validate, exits_with_0_when_there_is_no_violation) {
  for (const std::string rules : {"", " --as nemo-rl", " --as m2n"}) {
    const ProgramResult result = run("validate " + scenario_ + rules);
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_THAT(result.output, ::testing::EndsWith("deepseek-v3-h100: valid\n"));
    const int notes = rules == " --as nemo-rl" ? 1 : 0;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), notes + 1) << result.output;
    EXPECT_EQ(result.errors, "");
  }
}

TEST_F(Validate, exits_with_1_and_prints_one_line_per_violation) {
  const ProgramResult result = run("validate " + scenario_ + " --set generate.dp=4 --set fabric.hosts=40");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("--set generate.dp=4: generate.dp: found 4; allowed: gpus / tp = 8; "
                                       "change to: 8, or 128 GPUs"));
  EXPECT_THAT(
      result.output,
      HasSubstr("scenarios/deepseek-v3-h100.yaml:20: ranks.generate.hosts: found host 40 and 23 more"));
  EXPECT_THAT(result.output, HasSubstr("deepseek-v3-h100: 2 violations\n"));
}

TEST_F(Validate, json_carries_violations_and_notes) {
  const ProgramResult result = run("validate " + scenario_ + " --set generate.dp=4 --json");
  EXPECT_EQ(result.status, 1);
  const nlohmann::json document = nlohmann::json::parse(result.output);
  EXPECT_FALSE(document.at("valid").get<bool>());
  ASSERT_EQ(document.at("violations").size(), 1U);
  const nlohmann::json& violation = document.at("violations").front();
  EXPECT_EQ(violation.at("key"), "generate.dp");
  EXPECT_EQ(violation.at("line"), 0);  // of the command line
  EXPECT_EQ(violation.at("found"), "4");
  EXPECT_EQ(violation.at("allowed"), "gpus / tp = 8");
  EXPECT_THAT(violation.at("change").get<std::string>(), HasSubstr("8"));
  EXPECT_TRUE(document.at("notes").empty());
}

TEST_F(Validate, judges_the_calibration_that_a_prediction_needs) {
  const ProgramResult result = run("validate " + scenario_ + " --set calibration=none-such");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("calibration: found"));
  EXPECT_EQ(run("simulate " + scenario_ + " --set calibration=none-such").status, 2);
}

TEST_F(Validate, notes_what_nemo_rl_receives_into_fused_buffers) {
  const ProgramResult result = run("validate " + scenario_ + " --as nemo-rl");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("into parts of fused buffers (gate_up_proj, w13_weight)"));
}

TEST_F(Validate, exits_with_2_when_the_file_cannot_be_read) {
  const std::string broken = folder_.write("broken.yaml", "train: {{\n").string();
  const std::string unknown = folder_.write("unknown.yaml", "defaults: none.yaml\n").string();
  for (const std::string& arguments :
       {std::string("none.yaml"), broken, unknown, scenario_ + " --as teleport",
        scenario_ + " --set train.pp=0", scenario_ + " --model none.json",
        recipe_ + " --set cluster.num_nodes=many"}) {
    const ProgramResult result = run("validate " + arguments);
    EXPECT_EQ(result.status, 2) << arguments << result.output;
    EXPECT_EQ(result.output, "") << arguments;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
  }
}

TEST_F(Validate, of_a_recipe_names_its_keys_with_file_and_line) {
  const ProgramResult result =
      run(fmt::format("validate {} {} --as nemo-rl "
                      "--set policy.generation.vllm_cfg.expert_parallel_size=4 "
                      "--set cluster.num_nodes=61",
                      recipe_, model_));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output,
              HasSubstr("policy.generation.vllm_cfg.expert_parallel_size: found 4; allowed: 1 or "
                        "tensor_parallel_size = 8"));
  EXPECT_THAT(result.output,
              HasSubstr("cluster.num_nodes: found 480 GPUs; allowed: a multiple of tp x cp x pp"));
  EXPECT_THAT(result.output, HasSubstr(": 3 violations\n"));
}

TEST_F(Validate, what_it_refuses_of_a_recipe_simulate_refuses_for_every_reason) {
  const ProgramResult result =
      run(fmt::format("simulate {} {} --set policy.generation.vllm_cfg.expert_parallel_size=4 "
                      "--set policy.generation.vllm_kwargs.enable_eplb=true --set cluster.num_nodes=61",
                      recipe_, model_));
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "");
  for (const char* key : {"vllm_kwargs.enable_eplb", "vllm_cfg.expert_parallel_size", "cluster.num_nodes"}) {
    EXPECT_THAT(result.errors, HasSubstr(key));
  }
}

TEST_F(Validate, of_a_recipe_without_a_model_applies_the_rules_alone) {
  EXPECT_EQ(run("validate " + recipe_ + " --as nemo-rl").status, 0);
  const ProgramResult result =
      run("validate " + recipe_ + " --as nemo-rl --set policy.megatron_cfg.enabled=false");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("policy.megatron_cfg.enabled: found false; allowed: true"));
  EXPECT_THAT(result.output, HasSubstr("note: no model is given"));
}

TEST_F(Validate, recipes_are_read_by_the_other_commands_with_their_assumptions_on_standard_error) {
  const ProgramResult result =
      run(fmt::format("bound {} {} --set calibration=wire-only --json", recipe_, model_));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(nlohmann::json::parse(result.output).at("scenario"), "recipe");
  EXPECT_THAT(result.errors, HasSubstr("isthmus: assumed: hosts 0 to 60 train, hosts 61 to 61 generate"));
  EXPECT_THAT(result.errors, HasSubstr("isthmus: assumed: calibration wire-only"));
}

TEST_F(Validate, of_a_recipe_under_general_rules_points_to_those_of_nemo_rl) {
  const ProgramResult result =
      run(fmt::format("validate {} {} --set policy.generation.real_quant=true", recipe_, model_));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("note: NeMo RL's own rules violated: 1 (--as nemo-rl lists them)"));
}

TEST_F(Validate, recipes_are_simulated) {
  const ProgramResult result = run(fmt::format("simulate {} {} --policy p2p", recipe_, model_));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("calibration h100-ib400"));
  EXPECT_THAT(result.output, HasSubstr("p2p "));
}

TEST_F(Validate, a_model_that_is_not_there_is_named_as_the_option) {
  EXPECT_THAT(run("validate " + scenario_ + " --model none.json").errors, HasSubstr(": --model: found '"));
  EXPECT_THAT(run("validate " + recipe_ + " --model none.json").errors, HasSubstr(": --model: found '"));
}

TEST_F(Validate, recipes_that_are_no_scenario_are_refused_by_the_other_commands) {
  const ProgramResult colocated =
      run(fmt::format("simulate {} {} --set policy.generation.colocated.enabled=true", recipe_, model_));
  EXPECT_EQ(colocated.status, 2);
  EXPECT_EQ(colocated.output, "");
  EXPECT_THAT(colocated.errors, HasSubstr("policy.generation.colocated.enabled: found true; allowed: false"));
  const ProgramResult without_model = run("simulate " + recipe_);
  EXPECT_EQ(without_model.status, 2);
  EXPECT_THAT(without_model.errors, HasSubstr("--model"));
}

}  // namespace
}  // namespace isthmus
