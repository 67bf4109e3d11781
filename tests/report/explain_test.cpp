#include "report/explain.hpp"

#include <gtest/gtest.h>

#include "model/refit.hpp"
#include "planner/policy.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

constexpr const char* text =
    "name: small\n"
    "model: {config: models/qwen3-30b-a3b.json, layers: 2}\n"
    "fabric: {preset: dgx-h100, hosts: 4}\n"
    "train: {gpus: 16, tp: 2, ep: 4, etp: 1, pp: 2}\n"
    "generate: {gpus: 16, tp: 4}\n"
    "calibration: h100-ib400\n";

Scenario read(const std::vector<Override>& settings) {
  return parse_scenario(text, project_folder() / "scenarios/small.yaml", settings);
}

/// What `isthmus simulate` predicts with these settings.
PolicyRow simulated(const std::vector<Override>& settings, const std::string& policy) {
  const Scenario scenario = read(settings);
  const Calibration calibration = read_calibration(scenario.calibration, scenario.file.parent_path());
  return compare(resolve(scenario), {}, calibration, {policy}).policies.front();
}

TEST(Explain, predicts_each_change_as_simulate_does_with_the_same_settings) {
  const Explanation explanation = explain(read, "striped", 2);
  EXPECT_EQ(explanation.seconds, simulated({}, "striped").seconds);
  EXPECT_GE(explanation.changes.size(), 14U);
  double before = 0;
  for (const ChangeRow& row : explanation.changes) {
    const PolicyRow expected = simulated(row.settings, row.policy);
    EXPECT_EQ(row.refused, expected.refused) << row.what;
    if (!row.refused.empty()) continue;
    EXPECT_EQ(row.seconds, expected.seconds) << row.what;
    EXPECT_GE(row.seconds, before) << "sorted";
    before = row.seconds;
  }
}

TEST(Explain, takes_the_fastest_policy_unless_told_otherwise) {
  const Explanation explanation = explain(read, "", 1);
  for (const Policy& policy : policies()) {
    const PolicyRow row = simulated({}, std::string(policy.name));
    if (row.predicted()) {
      EXPECT_LE(explanation.seconds, row.seconds) << policy.name;
    }
  }
}

TEST(Explain, terms_and_path_cover_the_whole_time) {
  const Explanation explanation = explain(read, "p2p", 1);
  double sum = 0;
  for (const sim::Term& term : explanation.terms) sum += seconds(term.total());
  EXPECT_NEAR(sum, explanation.seconds, 1e-11);
  EXPECT_FALSE(explanation.path.empty());
  EXPECT_EQ(explanation.wire_only_seconds, simulated({{"calibration", "wire-only"}}, "p2p").seconds);
}

}  // namespace
}  // namespace isthmus::report
