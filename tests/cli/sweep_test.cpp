#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

class SweepCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    space_ = folder_.write("space.yaml",
                           "name: small\n"
                           "model: {config: models/deepseek-v3.json, layers: 2}\n"
                           "fabric: {preset: dgx-h100, hosts: 2}\n"
                           "train: {gpus: 8, tp: [1, 2, 16], etp: 1}\n"
                           "generate: {gpus: 8, tp: [4, 8]}\n"
                           "policies: [balanced, striped]\n"
                           "calibrations: h100-ib400\n");
  }
  std::string space() const { return "'" + space_.string() + "'"; }
  static std::size_t lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  std::filesystem::path space_;
};

TEST_F(SweepCommand, prints_a_table_with_the_winner_as_scenario_and_overrides) {
  const ProgramResult result = run("sweep " + space());
  EXPECT_EQ(result.status, 0) << result.errors;
  for (const char* const part :
       {"4 valid layouts of 6", "train.gpus  2", "within", "nccl_reshard",
        "policy.megatron_cfg.tensor_model_parallel_size=", "calibration: h100-ib400"}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  }
  EXPECT_EQ(result.errors, "") << "no progress bar unless on a terminal";
}

TEST_F(SweepCommand, prints_one_line_per_candidate_as_csv_and_json) {
  const ProgramResult csv = run("sweep --csv " + space());
  EXPECT_EQ(lines(csv.output), 1U + 8U);
  const ProgramResult json = run("sweep --json --threads 1 " + space());
  ASSERT_EQ(lines(json.output), 8U + 1U);
  std::size_t begin = 0;
  for (std::size_t end; (end = json.output.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto line = nlohmann::json::parse(json.output.substr(begin, end - begin));
    EXPECT_TRUE(line.contains("candidate") != line.contains("sweep"));
  }
}

TEST_F(SweepCommand, resumes_with_the_same_bytes) {
  const std::string folder = " --resume '" + (folder_.path() / "kept").string() + "' ";
  const ProgramResult first = run("sweep --csv" + folder + space()),
                      second = run("sweep --csv" + folder + space());
  EXPECT_EQ(first.status, 0) << first.errors;
  EXPECT_EQ(first.output, second.output);
  const ProgramResult other = run("sweep --set train.tp=2" + folder + space());
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.errors.find("--resume: found another sweep's results"), std::string::npos) << other.errors;
}

TEST_F(SweepCommand, refuses_bad_input_in_one_line) {
  for (const char* const arguments :
       {"--set policies=fast ", "--set train.gpus=0 ", "--set calibrations=nowhere ", "--set fabric.hosts=0 ",
        "--csv --json ", "--threads 0 "}) {
    const ProgramResult result = run(std::string("sweep ") + arguments + space());
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(lines(result.errors), 1U) << result.errors;
    EXPECT_EQ(result.output, "");
  }
}

TEST_F(SweepCommand, explain_gives_words_and_json) {
  const auto scenario = folder_.write("small.yaml",
                                      "name: small\n"
                                      "model: {config: models/deepseek-v3.json, layers: 2}\n"
                                      "fabric: {preset: dgx-h100, hosts: 2}\n"
                                      "train: {gpus: 8}\ngenerate: {gpus: 8, tp: 8}\n"
                                      "calibration: h100-ib400\n");
  const std::string file = "'" + scenario.string() + "'";
  const ProgramResult words = run("explain --policy striped " + file);
  EXPECT_EQ(words.status, 0) << words.errors;
  EXPECT_NE(words.output.find("the critical path"), std::string::npos);
  EXPECT_NE(words.output.find("one more stream"), std::string::npos);
  const auto json = nlohmann::json::parse(run("explain --json --policy striped " + file).output);
  EXPECT_EQ(json.at("policy"), "striped");
  EXPECT_FALSE(json.at("changes").empty());
}

}  // namespace
}  // namespace isthmus
