// The program as its users run it: output, exit status, and one-line messages for bad input.

#include <algorithm>
#include <ostream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus {
namespace {

class CommandLine : public ProgramTest {
 protected:
  /// The main scenario with one text replaced.
  std::string scenario_with(const std::string& from, const std::string& to) const {
    std::string text = read_file(project_folder() / "scenarios/deepseek-v3-h100.yaml");
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return folder_.write("scenario.yaml", text).string();
  }
};

std::string main_scenario() { return (project_folder() / "scenarios/deepseek-v3-h100.yaml").string(); }

TEST_F(CommandLine, simulate_prints_a_row_per_policy_with_the_published_range) {
  const ProgramResult result = run("simulate " + main_scenario() + " --policy p2p,balanced");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("p2p "), std::string::npos);
  EXPECT_NE(result.output.find("balanced "), std::string::npos);
  EXPECT_NE(result.output.find("2.39-2.83 s"), std::string::npos);
}

TEST_F(CommandLine, json_is_the_only_thing_on_standard_output) {
  const ProgramResult result = run("simulate " + main_scenario() + " --policy p2p --json");
  EXPECT_EQ(nlohmann::json::parse(result.output)["policies"].size(), 1U);
  EXPECT_EQ(result.errors, "");
}

TEST_F(CommandLine, the_gate_fails_with_what_binds_when_no_policy_is_fast_enough) {
  const ProgramResult slow = run("simulate " + main_scenario() + " --policy p2p --max-seconds 0.5");
  EXPECT_EQ(slow.status, 1);
  EXPECT_NE(slow.errors.find("what binds"), std::string::npos) << slow.errors;
  EXPECT_EQ(run("simulate " + main_scenario() + " --policy p2p --max-seconds 500").status, 0);
}

TEST_F(CommandLine, simulate_writes_a_trace_of_the_fastest_policy_and_says_what_it_leaves_out) {
  const std::string trace = (folder_.path() / "trace.json").string();
  const std::string scenario = (project_folder() / "scenarios/qwen3-30b-a3b-h100.yaml").string();
  const std::string command = "simulate " + scenario + " --policy p2p,balanced --trace ";
  const ProgramResult result = run(command + trace + " --trace-limit 100");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.errors.find("left out (--trace-limit)"), std::string::npos) << result.errors;
  const nlohmann::json document = nlohmann::json::parse(read_file(trace));
  EXPECT_EQ(document["otherData"]["policy"], "balanced");
  EXPECT_EQ(document["otherData"]["operations"], 100);
  EXPECT_EQ(run(command + "-").status, 2);
  EXPECT_EQ(run(command + folder_.path().string()).status, 2);
  EXPECT_EQ(run(command + trace + " --trace-limit 0").status, 2);
}

TEST_F(CommandLine, links_are_series_in_json_only) {
  const std::string scenario = (project_folder() / "scenarios/cases/uneven-ceil.yaml").string();
  const ProgramResult json = run("simulate " + scenario + " --policy p2p --links --json");
  EXPECT_EQ(nlohmann::json::parse(json.output)["policies"][0]["activity"]["links"][0]["load"].size(), 100U);
  const ProgramResult text = run("simulate " + scenario + " --links");
  EXPECT_EQ(text.status, 2);
  EXPECT_NE(text.errors.find("--links --json"), std::string::npos) << text.errors;
}

TEST_F(CommandLine, verify_proves_the_cases_and_bound_names_its_cut) {
  for (const auto& entry : std::filesystem::directory_iterator(project_folder() / "scenarios/cases")) {
    const ProgramResult result = run("verify " + entry.path().string());
    EXPECT_EQ(result.status, 0) << entry.path() << result.output << result.errors;
    EXPECT_EQ(run("simulate " + entry.path().string()).status, 0) << entry.path();
  }
  EXPECT_NE(run("bound " + main_scenario()).output.find("into NVLink domain"), std::string::npos);
  EXPECT_NE(run("bound " + main_scenario()).output.find("certificate verified"), std::string::npos);
  const ProgramResult certificate = run("bound " + main_scenario() + " --certificate -");
  EXPECT_NE(certificate.output.find("\"priced_capacity\": \""), std::string::npos) << certificate.errors;
}

TEST_F(CommandLine, inventory_prints_the_exact_totals) {
  const ProgramResult result =
      run("inventory " + (folder_.path() / "models/deepseek-v3.json").string() + " --json");
  EXPECT_EQ(nlohmann::json::parse(result.output)["parameters"], 671'026'419'200);
}

TEST_F(CommandLine, inventory_prints_patterns_tensors_and_precisions) {
  const std::string inventory = "inventory " + (folder_.path() / "models/deepseek-v3.json").string();
  EXPECT_NE(run(inventory).output.find("experts.{e}.gate_proj.weight "), std::string::npos);
  EXPECT_NE(run(inventory + " --tensors").output.find("layers.3.mlp.experts.7.gate_proj.weight "),
            std::string::npos);
  const auto json = [&](const std::string& options) {
    return nlohmann::json::parse(run(inventory + " --json " + options).output);
  };
  EXPECT_EQ(json("--dtype fp8")["bytes"], 673'150'582'112);
  EXPECT_EQ(json("--dtype stored")["bytes"], 1'342'052'868'096);
  EXPECT_EQ(json("--mtp")["payload_tensor_count"], 45'395 + 788);
  EXPECT_EQ(json("--no-vision")["payload_vision"], false);
  const ProgramResult unknown = run(inventory + " --dtype f16");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.errors.find("fp8-bf16-attention"), std::string::npos) << unknown.errors;
}

struct Shipped {
  std::string name, settings;
  std::string policies = "all";
  std::string precision{};  // where not empty, the only one but at full scale

  friend void PrintTo(const Shipped& shipped, std::ostream* out) { *out << shipped.name; }
};

class ShippedScenario : public ProgramTest, public ::testing::WithParamInterface<Shipped> {};

// Sizes that keep blocks of 128 whole: DeepSeek's experts have 2048 rows, Qwen3-30B's 768, Qwen3-4B 9728. Of
// the large models fewer layers, one simulated policy, and at normal scale one precision, for time.
INSTANTIATE_TEST_SUITE_P(
    CommandLine, ShippedScenario,
    ::testing::Values(Shipped{"deepseek-v3-h100",
                              "--set model.layers=19 --set 'generate={gpus: 256, tp: 16}'", "balanced",
                              "fp8"},
                      Shipped{"qwen3-235b-h100", "--set model.layers=28 --set 'generate={gpus: 128, tp: 4}'",
                              "balanced", "mxfp8"},
                      Shipped{"qwen3-30b-a3b-h100", "--set 'generate={gpus: 16, tp: 2}'"},
                      Shipped{"qwen3-32b-h100", ""}, Shipped{"qwen3-32b-nvl72", ""},
                      Shipped{"qwen3-4b-h100", "--set 'generate={gpus: 8, tp: 4}'"}));

TEST_P(ShippedScenario, moves_in_every_precision) {
  const Shipped& shipped = GetParam();
  for (const std::string precision : {"bf16", "fp8", "fp8-bf16-attention", "mxfp8"}) {
    if (!shipped.precision.empty() && precision != shipped.precision && !test::full_scale()) continue;
    const std::string arguments =
        fmt::format("{}/scenarios/{}.yaml {} --set model.dtype={}", project_folder().string(), shipped.name,
                    shipped.settings, precision);
    EXPECT_EQ(run("verify " + arguments).status, 0) << arguments;
    EXPECT_EQ(run("bound " + arguments).status, 0) << arguments;
    const ProgramResult result = run("simulate --json --policy " + shipped.policies + " " + arguments);
    EXPECT_EQ(result.status, 0) << arguments << result.errors;
    EXPECT_GT(nlohmann::json::parse(result.output)["target_live_bytes"], 0) << arguments;
  }
}

struct BadInput {
  const char* name;
  const char* from;
  const char* to;
  std::vector<std::string> expected;  // all of them in the message
};

std::vector<BadInput> bad_inputs() {
  return {
      {"unknown key", "pp: 16,", "pq: 16,", {":14: train.pq", "pp"}},
      {"model file that is not there",
       "models/deepseek-v3.json",
       "models/none.json",
       {"model.config", "none.json"}},
      {"tp that does not divide", "tp: 32, dp: 8", "tp: 48", {"generate.gpus", "256", "48"}},
      {"etp that does not divide the stage",
       "ep: 16, etp: 1, pp: 16, layers_first: 3, layers_last: 2",
       "ep: 1, etp: 3, pp: 1",
       {":14: train.", "3"}},
      {"pp of zero", "pp: 16,", "pp: 0,", {":14: train.pp", "found '0'", "1"}},
      {"negative size", "gpus: 256, tp: 1", "gpus: -256, tp: 1", {"train.gpus", "-256"}},
      {"GPU count that is no multiple of the grid",
       "gpus: 256, tp: 1",
       "gpus: 250, tp: 1",
       {"train.gpus", "250"}},
      {"dp that contradicts", "dp: 8", "dp: 4", {"generate.dp", "found 4", "8"}},
      {"fabric too small", "hosts: 64", "hosts: 32", {"ranks.generate.hosts", "32"}},
      {"negative bandwidth", "400 Gbit/s", "-400 Gbit/s", {"fabric.nic_bandwidth", "-400 Gbit/s", "rate"}},
      {"a size where a rate is meant", "400 Gbit/s", "450GB", {"fabric.nic_bandwidth", "450GB", "rate"}},
      {"not YAML", "train: {", "train: {{", {".yaml:"}},
      {"layers that do not divide", "layers_first: 3", "layers_first: 4", {"train.layers_first", "stages"}},
      {"calibration that is not there",
       "calibration: h100-ib400",
       "calibration: h100",
       {"calibration", "h100"}},
      {"experts that ep does not divide", "ep: 16,", "ep: 12,", {"train."}},
  };
}

TEST_F(CommandLine, bad_input_is_one_line_with_file_line_key_and_exit_status_2) {
  for (const BadInput& bad : bad_inputs()) {
    const std::string scenario = scenario_with(bad.from, bad.to);
    const ProgramResult result = run("simulate " + scenario + " --json");
    EXPECT_EQ(result.status, 2) << bad.name << ": " << result.errors;
    EXPECT_EQ(result.output, "") << bad.name;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1)
        << bad.name << ": " << result.errors;
    EXPECT_NE(result.errors.find("scenario.yaml:"), std::string::npos) << bad.name << ": " << result.errors;
    for (const std::string& part : bad.expected) {
      EXPECT_NE(result.errors.find(part), std::string::npos)
          << bad.name << " lacks '" << part << "': " << result.errors;
    }
  }
}

TEST_F(CommandLine, bad_arguments_and_missing_files_exit_with_2) {
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("simulate").status, 2);
  EXPECT_EQ(run("simulate " + (folder_.path() / "none.yaml").string()).status, 2);
  EXPECT_EQ(run("simulate " + main_scenario() + " --policy teleport").status, 2);
  EXPECT_EQ(run("simulate " + main_scenario() + " --set refit.streams").status, 2);
  EXPECT_EQ(run("simulate " + main_scenario() + " --max-seconds -1").status, 2);
  EXPECT_EQ(run("inventory " + main_scenario()).status, 2);
  EXPECT_EQ(run("--help").status, 0);
}

TEST_F(CommandLine, faults_of_arguments_are_one_line_too) {
  for (const char* arguments :
       {"simulate", "simulate --policy", "teleport", "simulate x.yaml --max-seconds -1",
        "simulate x.yaml --set 'a\nb'", "simulate x.yaml --policy 'a\nb'"}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << arguments << result.errors;
    EXPECT_EQ(result.errors.rfind("isthmus: ", 0), 0U) << arguments << result.errors;
  }
}

TEST_F(CommandLine, sizes_beyond_all_reason_are_refused_not_simulated) {
  const std::string scenario = scenario_with("400 Gbit/s", "1 MB/s");
  const ProgramResult result = run("simulate " + scenario);
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("what one link moves"), std::string::npos) << result.errors;
}

TEST_F(CommandLine, an_override_at_fault_names_the_setting) {
  const ProgramResult result = run("simulate " + main_scenario() + " --set train.pp=0");
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("train.pp"), std::string::npos) << result.errors;
}

}  // namespace
}  // namespace isthmus
