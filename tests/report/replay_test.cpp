#include "report/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "hw/host.hpp"
#include "model/error.hpp"
#include "model/refit_scale.hpp"
#include "planner/policy.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::report {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.emplace_back(policy.name);
  return names;
}

Refit small(const std::string& scenario, double share) {
  return scale_refit(resolve(read_scenario(project_folder() / "scenarios" / (scenario + ".yaml"))), share)
      .refit;
}

TEST(Replay, of_the_cases_is_byte_exact_under_every_policy_that_serves_them) {
  for (const auto& file : std::filesystem::directory_iterator(project_folder() / "scenarios/cases")) {
    SCOPED_TRACE(file.path().string());
    const Refit refit = scale_refit(resolve(read_scenario(file.path())), 1e-4).refit;
    hw::HostExecutor executor;
    const Replay result = replay(refit, all_policies(), executor, {});
    EXPECT_TRUE(result.byte_exact()) << replay_document(result, false);
  }
}

TEST(Replay, of_deepseek_v3_made_small_is_byte_exact_on_all_its_ranks) {
  const Refit refit = small("deepseek-v3-h100", 1e-6);
  hw::HostExecutor executor;
  const std::vector<std::string> all{"p2p", "striped", "m2n-node-aware", "balanced"};
  const std::vector<std::string> policies = test::sanitized() ? std::vector<std::string>{"balanced"} : all;
  const Replay result = replay(refit, policies, executor, {});
  EXPECT_TRUE(result.byte_exact()) << replay_document(result, false);
  EXPECT_EQ(result.ranks, 512U);
}

TEST(Replay, tells_json_and_table_the_same) {
  const Refit refit = small("cases/uneven-ceil", 1);
  hw::HostExecutor executor;
  ReplaySettings settings;
  settings.options.repetitions = 2;
  settings.calibration = wire_only();
  const Replay result = replay(refit, {"p2p"}, executor, settings);
  const Json document = Json::parse(replay_document(result, true));
  const Json& row = document["policies"][0];
  EXPECT_EQ(row["backend"], "host");
  EXPECT_EQ(row["byte_exact"], true);
  EXPECT_EQ(row["repetition_seconds"].size(), 2U);
  EXPECT_EQ(row["measured_seconds"], seconds(result.policies[0].measurement->fastest()));
  EXPECT_EQ(row["predicted_seconds"], *result.policies[0].predicted_seconds);
  EXPECT_EQ(row["error"], *result.policies[0].error());
  EXPECT_EQ(document["calibration"], "wire-only");
  EXPECT_THAT(replay_document(result, false), HasSubstr("byte-exact ("));
}

TEST(Replay, shows_what_arrived_wrong) {
  const Refit refit = small("cases/uneven-ceil", 1);
  hw::HostSettings faulty;
  faulty.faults.corrupt_operation = 0;
  hw::HostExecutor executor(faulty);
  const Replay result = replay(refit, {"p2p"}, executor, {});
  EXPECT_FALSE(result.byte_exact());
  EXPECT_THAT(replay_document(result, false), HasSubstr("should have come by step 0 of tensor"));
  const Json document = Json::parse(replay_document(result, true));
  EXPECT_EQ(document["byte_exact"], false);
  EXPECT_GE(document["policies"][0]["mismatch_count"], 1);
}

TEST(Replay, says_how_launches_were_issued) {
  const Refit refit = small("cases/uneven-ceil", 1);
  hw::HostExecutor executor;
  Replay result = replay(refit, {"p2p"}, executor, {});
  const auto row = [&result] { return Json::parse(replay_document(result, true))["policies"][0]; };
  EXPECT_EQ(row()["graph"], false);
  EXPECT_TRUE(row()["graph_refused"].is_null());
  result.policies[0].measurement->graph_refused = "cudaStreamEndCapture: no";
  EXPECT_EQ(row()["graph_refused"], "cudaStreamEndCapture: no");
  EXPECT_THAT(replay_document(result, false),
              HasSubstr("no graph, launched one by one: cudaStreamEndCapture"));
  result.policies[0].measurement->graph_refused.clear();
  result.policies[0].measurement->graph = true;
  EXPECT_EQ(row()["graph"], true);
  EXPECT_THAT(replay_document(result, false), HasSubstr("one graph"));
}

TEST(Replay, runs_no_plan_that_is_not_proven) {
  const Refit refit = small("cases/uneven-ceil", 1);
  Plan plan = std::get<Plan>(plan_p2p(refit));
  plan.instances.pop_back();
  hw::HostExecutor executor;
  const Replay result = replay_plan(refit, plan, executor, {});
  EXPECT_FALSE(result.byte_exact());
  EXPECT_FALSE(result.policies[0].measurement);
  EXPECT_THAT(replay_document(result, false), HasSubstr("p2p: not proven, not run: "));
}

TEST(Replay, judges_errors_to_either_side) {
  Replay result;
  result.policies.push_back({"p2p", "", {}, hw::Measurement{}, 1, 2.0});
  result.policies[0].measurement->times = {{3 * picoseconds_per_second}};
  EXPECT_DOUBLE_EQ(*result.policies[0].error(), 0.5);
  EXPECT_TRUE(result.within(0.5));
  EXPECT_FALSE(result.within(0.4));
  result.policies[0].predicted_seconds = 6.0;
  EXPECT_TRUE(result.within(0.5));
  EXPECT_FALSE(result.within(0.4));
}

}  // namespace
}  // namespace isthmus::report
