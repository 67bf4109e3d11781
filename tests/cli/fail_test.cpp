// `isthmus fail` as users run it.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

/// One gigabyte over one NIC: 20 ms.
class FailCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    file_ = folder_
                .write("one.yaml",
                       "fabric: {preset: dgx-h100, hosts: 2}\n"
                       "tensor: {shape: [1000000000], dtype: u8}\n"
                       "source: {mesh: [1], first_rank: 0, placements: [replicated]}\n"
                       "target: {mesh: [1], first_rank: 8, placements: [replicated]}\n"
                       "failed_steps: {timeout: 5 ms}\n")
                .string();
  }

  nlohmann::json json(const std::string& arguments) const {
    const ProgramResult result = run("fail " + file_ + " --policy p2p --json " + arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return nlohmann::json::parse(result.output)["policies"][0];
  }

  std::string file_;
};

TEST_F(FailCommand, says_what_each_rule_costs) {
  const nlohmann::json row = json("--at '10 ms' --what nic:1.0 --recover '12 ms' --tensors");
  EXPECT_NEAR(row["healthy_seconds"], 0.02, 1e-10);
  const nlohmann::json &stop = row["runs"][0], &retry = row["runs"][1], &reroute = row["runs"][2];
  EXPECT_TRUE(stop["stopped"]);
  EXPECT_NEAR(stop["lost_seconds"], 0.015, 1e-10);  // until it is noticed
  EXPECT_EQ(stop["ranks"][0]["serves"], "neither");
  EXPECT_EQ(stop["ranks"][0]["incomplete"][0]["arrived_bytes"], 500'000'000);
  EXPECT_NEAR(retry["seconds"], 0.015 + 0.02, 1e-10);
  EXPECT_EQ(retry["repeated_bytes"], 500'000'000);
  EXPECT_EQ(reroute["ranks"][0]["serves"], "new");
  EXPECT_NEAR(row["deadline_seconds"], 0.035 + 0.005, 1e-10);
}

TEST_F(FailCommand, counts_the_refits_of_a_month_by_its_formula) {
  const nlohmann::json row =
      json("--at '10 ms' --what nic:1.0 --failed-steps stop --failures-per-day 1000 --interval '20 ms'");
  const double healthy = 30 * 86'400 / 0.04;
  EXPECT_NEAR(row["healthy_refits_per_month"], healthy, 1);
  const double goodput = 1 - 1000 * 0.5 * 0.015 / 86'400;
  EXPECT_NEAR(row["runs"][0]["goodput"], goodput, 1e-9);
  EXPECT_NEAR(row["runs"][0]["refits_per_month"], healthy * goodput, 1);
}

TEST_F(FailCommand, lets_a_rank_serve_old_weights_that_nothing_was_written_over) {
  EXPECT_EQ(json("--at '0 s' --what nic:1.0 --failed-steps stop")["runs"][0]["ranks"][0]["serves"], "old");
}

TEST_F(FailCommand, prints_a_table) {
  const ProgramResult result =
      run("fail " + file_ + " --policy p2p --at '10 ms' --what nic:1.0 --change 0.5");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("nic:1.0 at 10.000 ms keeps 0.5 of its capacity, for good"));
  EXPECT_THAT(result.output, HasSubstr("30.000 ms"));
}

TEST_F(FailCommand, refuses_what_it_cannot_ask_in_one_line) {
  const auto refusal = [this](const std::string& arguments) {
    const ProgramResult result = run("fail " + file_ + " " + arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    return result.errors;
  };
  EXPECT_THAT(refusal("--at 10 --what nic:1.0"), HasSubstr("--at: found '10'; allowed: a time"));
  EXPECT_THAT(refusal("--at '1 ms' --what disk:1"),
              HasSubstr("--what: found 'disk:1'; allowed: nic:HOST.GPU"));
  EXPECT_THAT(refusal("--at '1 ms' --what nic:5.0"), HasSubstr("allowed: one of 2 hosts"));
  EXPECT_THAT(refusal("--at '1 ms' --what nic:1.0 --change 2"),
              HasSubstr("allowed: 0 (failed), or 0.001 to 1"));
  EXPECT_THAT(refusal("--at '1 ms' --what nic:1.0 --recover '1 ms'"), HasSubstr("a time after --at"));
  EXPECT_THAT(refusal("--at '1 ms' --what nic:1.0 --failed-steps wait"), HasSubstr("stop, retry, reroute"));
  EXPECT_THAT(refusal("--at '1 ms' --what nic:1.0 --tensors"), HasSubstr("without --json"));
}

TEST_F(FailCommand, simulate_says_where_a_scenario_with_faults_stops) {
  const std::string faults = " --set 'faults=[{at: 10 ms, what: nic:1.0}]'";
  const ProgramResult text = run("simulate --policy p2p " + file_ + faults);
  EXPECT_THAT(text.output, HasSubstr("p2p: stopped at 0.010000 s: 1 operations failed, 0 never started"));
  const ProgramResult json = run("simulate --json --policy p2p " + file_ + faults);
  EXPECT_TRUE(nlohmann::json::parse(json.output)["policies"][0].contains("stopped"));
}

}  // namespace
}  // namespace isthmus
