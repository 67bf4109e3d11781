// How near the policies come to the lower bound, wire-only, and to each other under every calibration: one
// row per refit. Prints Markdown. Run: build/release/bench/quality [FILE...]
// A file is a scenario, or FILE=MODEL for a recipe or an M2N configuration with the model's configuration.
// Without files: the project's scenarios, and the recipes and M2N configurations of the outside data where
// they are ($ISTHMUS_DATA, else ../shared/data beside the project).

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/calibration.hpp"
#include "model/error.hpp"
#include "model/input.hpp"
#include "model/refit.hpp"
#include "planner/bound.hpp"
#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace {

using namespace isthmus;

struct QualityRow {
  std::string name;
  std::size_t gpus = 0;
  double bound = 0, load = 0;                // seconds; load: of the busiest link under `balanced`
  std::map<std::string, double> wire, full;  // seconds by policy
  bool proven = true;
};

/// The time that the busiest link needs for its bytes: what no order of the same transfers can beat.
double busiest(const Refit& refit, const Timeline& timeline) {
  Duration longest;
  for (std::size_t i = 0; i < timeline.link_bytes.size(); ++i)
    longest = std::max(longest, timeline.link_bytes[i] / refit.fabric.links()[i].nominal);
  return seconds(longest);
}

QualityRow measure(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  std::optional<std::filesystem::path> model;
  if (equals != std::string::npos) model = argument.substr(equals + 1);
  const Input input = read_input(argument.substr(0, equals), {}, model);
  const Scenario& scenario = require_scenario(input);
  const Refit refit = resolve(scenario);
  QualityRow row{scenario.name, refit.members(), seconds(lower_bound(refit).time), 0, {}, {}, true};
  const auto folder = std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";
  const Calibration wire = read_calibration("wire-only", folder),
                    full = read_calibration("h100-ib400", folder);
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    if (plan == nullptr) continue;
    row.proven &= check(refit, *plan).proven();
    const Operations operations = expand(refit, *plan);
    const sim::Simulator simulator(refit, operations);
    const sim::Prediction prediction = simulator.run(wire);
    row.wire[std::string(policy.name)] = seconds(prediction.time);
    row.full[std::string(policy.name)] = seconds(simulator.run(full).time);
    if (policy.name == "balanced") row.load = busiest(refit, prediction.timeline);
  }
  return row;
}

/// The best other policy's time over that of `balanced`; 0 where there is none.
double best_other(const std::map<std::string, double>& times) {
  double best = 0;
  for (const auto& [policy, time] : times)
    if (policy != "balanced" && (best == 0 || time < best)) best = time;
  return best == 0 ? 0 : best / times.at("balanced");
}

void print(const QualityRow& row) {
  std::string line = fmt::format("| {} | {} | {:.4f} |", row.name, row.gpus, row.bound);
  for (const Policy& policy : policies()) {
    const auto found = row.wire.find(std::string(policy.name));
    line += found == row.wire.end() ? " refused |" : fmt::format(" {:.3f} |", found->second / row.bound);
  }
  const bool any = row.wire.contains("balanced");
  line += any ? fmt::format(" {:.3f} | {:.2f} | {:.2f} |", row.load / row.bound, best_other(row.wire),
                            best_other(row.full))
              : " | | |";
  fmt::print("{} {} |\n", line, row.proven ? "yes" : "NO");
  std::fflush(stdout);
}

void print_header() {
  std::string head = "| refit | ranks | bound, s |", rule = "| --- | --- | --- |";
  for (const Policy& policy : policies()) {
    head += fmt::format(" {} |", policy.name);
    rule += " --- |";
  }
  fmt::print(
      "{} load of balanced | best other, wire-only | best other, calibrated | proven |\n{} --- | --- | --- | "
      "--- |\n",
      head, rule);
}

struct ForeignFile {
  std::string_view file, model;  // below the outside data; the model's folder
};

/// Recipes that NeMo RL's reshard refit supports, and M2N's system configurations.
constexpr ForeignFile foreign_files[]{
    {"nemo_rl/recipes/llm/performance/grpo-deepseek-v3-64n8g-async-1off.yaml", "deepseek-v3"},
    {"nemo_rl/recipes/llm/performance/grpo-deepseek-v3-64n8g-fp8-async-1off.yaml", "deepseek-v3"},
    {"nemo_rl/recipes/llm/performance/grpo-llama3.1-8b-instruct-2n8g-async-1off.yaml", "llama3.1-8b"},
    {"nemo_rl/recipes/llm/performance/grpo-nemotron3-super-120BA12B-32n8g-async-1off.yaml",
     "nemotron3-super-120b-a12b"},
    {"nemo_rl/recipes/llm/performance/grpo-qwen3-235b-32n8g-async-1off.yaml", "qwen3-235b-a22b"},
    {"nemo_rl/recipes/llm/performance/grpo-qwen3-30ba3b-4n4g-async-1off-mxfp8-rollout.yaml", "qwen3-30b-a3b"},
    {"nemo_rl/recipes/llm/performance/grpo-qwen3-30ba3b-4n8g-async-1off.yaml", "qwen3-30b-a3b"},
    {"nemo_rl/recipes/llm/performance/grpo-qwen3-32b-8n8g-async-1off.yaml", "qwen3-32b"},
    {"m2n_configs/dsv3-256gpus-gb200.json", "deepseek-v3"},
    {"m2n_configs/qwen235b-TP2CP2PP4EP16-128gpus-gb200.json", "qwen3-235b-a22b"},
    {"m2n_configs/qwen3-32b-dp1-tp4-to-dp1-tp4.json", "qwen3-32b"},
    {"m2n_configs/qwen3-32b-tp4pp4dp2-to-tp4dp8-64gpus-h100.json", "qwen3-32b"},
};

/// Scenarios by name, then the foreign files that are there; those that are not are named.
std::vector<std::string> usual_files() {
  namespace fs = std::filesystem;
  const fs::path project = ISTHMUS_SOURCE_DIR;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(project / "scenarios"))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  const char* data = std::getenv("ISTHMUS_DATA");
  const fs::path outside = data != nullptr ? fs::path(data) : project.parent_path() / "shared" / "data";
  for (const ForeignFile& foreign : foreign_files) {
    const fs::path file = outside / foreign.file, model = outside / "models" / foreign.model / "config.json";
    if (fs::exists(file)) {
      files.push_back(fmt::format("{}={}", file.string(), model.string()));
    } else {
      fmt::print(stderr, "quality: not there: {}\n", file.string());
    }
  }
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> files(arguments + 1, arguments + count);
  if (files.empty()) files = usual_files();
  print_header();
  std::vector<double> ratios;
  for (const std::string& file : files) {
    try {
      const QualityRow row = measure(file);
      print(row);
      if (row.bound > 0 && row.wire.contains("balanced"))
        ratios.push_back(row.wire.at("balanced") / row.bound);
    } catch (const InputError& error) {
      fmt::print(stderr, "quality: {}\n", error.what());
    }
  }
  const auto within = [&](double limit) {
    return std::count_if(ratios.begin(), ratios.end(), [limit](double ratio) { return ratio <= limit; });
  };
  fmt::print("\nbalanced: {} refits, {} within 1.05 of the bound, {} within 1.15\n", ratios.size(),
             within(1.05), within(1.15));
  return 0;
}
