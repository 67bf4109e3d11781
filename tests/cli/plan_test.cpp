// Plan files on the command line: plan, verify, show, diff.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class PlanCommand : public ProgramTest {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  /// Writes the plan of a policy for a scenario text; returns its path.
  std::string planned(const std::string& policy, const std::string& name,
                      const std::string& scenario = bare_tensor) const {
    folder_.write("s.yaml", scenario);
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    const ProgramResult result =
        run(fmt::format("plan {} --policy {} -o {}", path("s.yaml"), policy, path(name)));
    EXPECT_EQ(result.status, 0) << result.errors;
    return path(name);
  }
};

TEST_F(PlanCommand, writes_a_plan_that_verify_proves_with_nothing_else) {
  const std::string plan = planned("p2p", "plans/p.json");
  std::filesystem::remove(path("s.yaml"));
  const ProgramResult result = run("verify " + plan);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("p2p: proven: 6 steps write 96 B"));
  const Json verdict = Json::parse(run("verify --json " + plan).output);
  EXPECT_EQ(verdict["proven"], true);
  EXPECT_EQ(verdict["violations"], Json::array());
  EXPECT_EQ(verdict["policies"][0]["policy"], "p2p");
}

TEST_F(PlanCommand, writes_to_standard_output_or_says_what_it_wrote) {
  const std::string plan = planned("p2p", "p.json");
  const std::string common = "plan " + path("s.yaml") + " --policy p2p";
  EXPECT_EQ(Json::parse(run(common + " -o -").output)["format"], "isthmus-plan");
  const Json said = Json::parse(run(common + " --json -o " + plan).output);
  EXPECT_EQ(said["steps"], 6);
  EXPECT_EQ(said["file_bytes"], std::filesystem::file_size(plan));
  EXPECT_EQ(run(common + " -o - --json").status, 2);
  EXPECT_EQ(run("plan " + path("s.yaml") + " --policy teleport -o -").status, 2);
  EXPECT_EQ(run(common + " -o " + path("none/such/p.json")).status, 3);
}

TEST_F(PlanCommand, of_a_whole_model_is_proven_from_any_folder_without_its_configuration) {
  const std::string scenario = replaced(whole_refit, "m.json", "models/deepseek-v3.json, layers: 4");
  const std::string plan = planned("balanced", "deep/er/plan.json", scenario);
  EXPECT_THAT(read_file(plan), HasSubstr("../../models/deepseek-v3.json"));
  std::filesystem::remove_all(path("models"));
  EXPECT_EQ(run("verify " + plan).status, 0);
}

TEST_F(PlanCommand, of_what_sources_quantise_says_so_and_is_proven_for_nothing_else) {
  const std::string wanting = replaced(replaced(whole_refit, "m.json", "models/deepseek-v3.json, layers: 4"),
                                       "gpus: 16, tp: 8", "gpus: 16, tp: 8, quantize: mxfp8");
  const std::string plan = planned("balanced-quantized", "q.json", wanting);
  const Json file = Json::parse(read_file(plan));
  EXPECT_THAT(read_file(plan), HasSubstr("quantize_at: source"));
  std::map<std::string, int> parts;
  for (const Json& tensor : file["tensors"]) ++parts[tensor.value("quantized", "none")];
  EXPECT_GT(parts["values"], 10);
  EXPECT_EQ(parts["values"], parts["scales"]);
  EXPECT_THAT(run("verify " + plan).output, HasSubstr("balanced-quantized: proven"));
  const std::string against = fmt::format("verify {} --against {}", plan, path("s.yaml"));
  EXPECT_EQ(run(against).status, 1);
  EXPECT_EQ(run(against + " --set refit.quantize_at=source").status, 0);
  const ProgramResult replayed = run("replay " + plan);
  EXPECT_EQ(replayed.status, 2);
  EXPECT_THAT(replayed.errors,
              HasSubstr("refit.quantize_at: found source; allowed: target: backends move bytes"));
}

TEST_F(PlanCommand, quantised_first_is_a_variant_of_scenarios_that_want_it_with_a_bound_of_its_own) {
  folder_.write("s.yaml", replaced(replaced(whole_refit, "m.json", "models/deepseek-v3.json, layers: 4"),
                                   "gpus: 16, tp: 8", "gpus: 16, tp: 8, quantize: mxfp8"));
  const std::string simulate = "simulate --json " + path("s.yaml");
  const Json beside = Json::parse(run(simulate).output);
  const Json& row = beside["policies"].back();
  EXPECT_EQ(row["policy"], "balanced-quantized");
  EXPECT_EQ(beside["policies"].size(), 8U);
  EXPECT_EQ(beside["quantized"], "target");
  EXPECT_EQ(row["quantized"], "source");
  EXPECT_TRUE(row["proven"]);
  EXPECT_LT(row["payload_bytes"], 0.6 * beside["payload_bytes"].get<double>());
  EXPECT_LT(row["lower_bound_seconds"], beside["lower_bound_seconds"]);
  EXPECT_GE(row["seconds"], row["lower_bound_seconds"]);
  EXPECT_NEAR(row["efficiency"], row["lower_bound_seconds"].get<double>() / row["seconds"].get<double>(),
              1e-12);
  // the same as of the scenario that says so itself, in which all others refuse
  const Json itself = Json::parse(run(simulate + " --set refit.quantize_at=source").output);
  EXPECT_EQ(itself["quantized"], "source");
  EXPECT_EQ(itself["lower_bound_seconds"], row["lower_bound_seconds"]);
  EXPECT_EQ(itself["policies"].back()["digest"], row["digest"]);
  for (std::size_t i = 0; i + 1 < itself["policies"].size(); ++i)
    EXPECT_THAT(itself["policies"][i]["refused"].get<std::string>(), HasSubstr("BF16"));
  EXPECT_THAT(run("simulate " + path("s.yaml")).output,
              HasSubstr("quantised at the source; no plan for that"));
  EXPECT_THAT(run("verify " + path("s.yaml")).output, HasSubstr("balanced-quantized: proven"));
}

TEST_F(PlanCommand, verify_says_what_is_wrong_with_a_broken_plan_and_ends_with_1) {
  const std::string good = read_file(planned("p2p", "p.json"));
  const std::string wrong =
      folder_.write("wrong.json", replaced(good, "\"source\": \"s0\"", "\"source\": \"s3\"")).string();
  const ProgramResult result = run("verify --json " + wrong);
  EXPECT_EQ(result.status, 1);
  const Json verdict = Json::parse(result.output);
  EXPECT_EQ(verdict["proven"], false);
  EXPECT_EQ(verdict["violations"][0]["kind"], "not_held");
  EXPECT_EQ(verdict["violations"][0]["steps"], Json::array({0}));
  const ProgramResult malformed =
      run("verify " + folder_.write("malformed.json", replaced(good, "\"kind\"", "\"sort\"")).string());
  EXPECT_EQ(malformed.status, 2);
  EXPECT_THAT(malformed.errors, HasSubstr("malformed.json:"));
  EXPECT_THAT(malformed.errors, HasSubstr("patterns.0.steps.0.kind"));
}

TEST_F(PlanCommand, verify_against_another_scenario_refuses_other_ranks) {
  const std::string plan = planned("p2p", "p.json");
  folder_.write("other.yaml", replaced(bare_tensor, "first_rank: 0", "first_rank: 1"));
  const ProgramResult other = run("verify " + plan + " --against " + path("other.yaml"));
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.output,
              HasSubstr("plan is for source ranks 0-3, target ranks 6, 4-5; asked for 1-4 -> 6, 4-5"));
  folder_.write("fabric.yaml", replaced(bare_tensor, "hosts: 1", "hosts: 2"));
  EXPECT_EQ(run("verify " + plan + " --against " + path("fabric.yaml")).status, 0);
  EXPECT_EQ(run("verify " + plan + " --against " + path("fabric.yaml") + " --set tensor.dtype=f32").status,
            1);
  EXPECT_EQ(run("verify " + plan + " --policy p2p").status, 2);
  EXPECT_EQ(run("verify " + plan + " --set tensor.dtype=f32").status, 2);
  EXPECT_EQ(run("verify " + path("s.yaml") + " --against " + path("s.yaml")).status, 2);
  EXPECT_EQ(run("verify " + path("s.yaml") + " --policy p2p").status, 0);
}

TEST_F(PlanCommand, show_prints_the_whole_a_tensor_or_a_rank) {
  const std::string plan =
      planned("gather-broadcast", "p.json", replaced(bare_tensor, "shape", "name: w, shape"));
  EXPECT_THAT(run("show " + plan).output,
              HasSubstr("plan of policy gather-broadcast for refit 0: 1 tensors"));
  const ProgramResult tensor = run("show " + plan + " --tensor w");
  EXPECT_EQ(tensor.status, 0);
  EXPECT_THAT(tensor.output, HasSubstr("tensor w: bf16 [8, 6]"));
  EXPECT_THAT(tensor.output, HasSubstr("step 0: "));
  const Json steps = Json::parse(run("show --json --rank 6 " + plan).output)["listed_steps"];
  ASSERT_GT(steps.size(), 0U);
  for (const Json& step : steps) {
    const bool takes_part = step.contains("members") ? step["members"].dump().find('6') != std::string::npos
                                                     : step["source"] == 6 || step["target"] == 6;
    EXPECT_TRUE(takes_part) << step;
  }
  EXPECT_THAT(run("show " + plan + " --tensor v").errors, HasSubstr("such as w"));
  EXPECT_THAT(run("show " + plan + " --rank 99").errors, HasSubstr("a rank from 0 to 7"));
  EXPECT_EQ(run("show " + path("s.yaml")).status, 2);
}

TEST_F(PlanCommand, diff_ends_with_0_for_equal_plans_and_1_for_others) {
  const std::string first = planned("p2p", "a.json"), second = planned("gather-broadcast", "b.json");
  const ProgramResult same = run("diff " + first + " " + first);
  EXPECT_EQ(same.status, 0);
  EXPECT_THAT(same.output, HasSubstr("the same steps for each of 1 tensors"));
  const ProgramResult other = run("diff " + first + " " + second);
  EXPECT_EQ(other.status, 1);
  for (const char* expected : {"lanes: ", "in all: 6 steps, 96 bytes; ", "kind: send: ", "rank 0 to rank 6: ",
                               ": step 0: send rank 0 source -> rank 6 target"}) {
    EXPECT_THAT(other.output, HasSubstr(expected));
  }
  const Json document = Json::parse(run("diff --json " + first + " " + second).output);
  EXPECT_EQ(document["equal"], false);
  EXPECT_EQ(document["second_policy"], "gather-broadcast");
  EXPECT_EQ(document["tensors_with_other_steps"], 1);
  EXPECT_GT(document["differences"].size(), 3U);
}

}  // namespace
}  // namespace isthmus
