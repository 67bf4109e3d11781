#include "report/refit_cost.hpp"

#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

constexpr std::int64_t whole = 1'000'000'000;

/// A small model from host 0 to two engines on host 1.
class RefitCostTest : public ::testing::Test {
 protected:
  RefitCost cost(const DecodeSpec& decode, int ctas, bool beside = true,
                 const std::string& policy = "striped") const {
    return RefitCosts(refit, calibration, 4, *find_policy(policy)).run(decode, ctas, beside);
  }

  Scenario scenario = parse_scenario(
      "model: {config: models/qwen3-30b-a3b.json, layers: 1}\n"
      "fabric: {preset: dgx-h100, hosts: 2}\n"
      "train: {gpus: 8, ep: 8, etp: 1}\n"
      "generate: {gpus: 8, tp: 4}\n"
      "calibration: h100-ib400\n",
      project_folder() / "scenarios/small.yaml");
  Calibration calibration = read_calibration("h100-ib400", project_folder() / "scenarios");
  Refit refit = resolve(scenario);
};

DecodeSpec wants(double nvlink, double nic, double memory, double sm) {
  DecodeSpec decode;
  decode.nvlink = nvlink;
  decode.nic = nic;
  decode.memory = memory;
  decode.sm = sm;
  return decode;
}

TEST_F(RefitCostTest, beside_no_demand_is_that_of_the_refit_alone) {
  const RefitCost idle = cost({}, 0);
  EXPECT_EQ(idle.beside, idle.alone);
  EXPECT_EQ(idle.decoding, whole);
}

TEST_F(RefitCostTest, takes_nothing_from_decoding_unless_asked_for_it) {
  const RefitCost alone = cost(wants(0.5, 0.5, 0.5, 1), 16, false);
  EXPECT_EQ(alone.beside, alone.alone);
  EXPECT_EQ(alone.decoding, whole);
}

TEST_F(RefitCostTest, grows_with_what_decoding_asks_of_nics) {
  Duration before = cost({}, 0).alone;
  std::int64_t kept_before = whole;
  for (const double share : {0.3, 0.6, 1.0}) {
    const RefitCost beside = cost(wants(0, share, 0, 0), 0);
    EXPECT_GE(beside.beside, before) << share;
    EXPECT_LE(beside.decoding, kept_before) << share;
    before = beside.beside;
    kept_before = beside.decoding;
  }
  EXPECT_GT(before, cost({}, 0).alone);
  EXPECT_LT(kept_before, whole);
}

TEST_F(RefitCostTest, of_sms_is_what_the_budget_leaves) {
  EXPECT_EQ(cost(wants(0, 0, 0, 1), 33).decoding, whole / 4 * 3);  // 99 of 132
  EXPECT_EQ(cost(wants(0, 0, 0, 0.75), 33).decoding, whole);       // it wants no more than these
  EXPECT_EQ(cost(wants(0, 0, 0, 1), 0).decoding, whole);           // moved without SMs
  EXPECT_EQ(cost(wants(0, 0, 0, 1), 200).decoding, 0);
}

TEST_F(RefitCostTest, shrinks_with_the_budget_and_costs_decoding_more) {
  const RefitCost few = cost(wants(0.1, 0, 0, 1), 2), many = cost(wants(0.1, 0, 0, 1), 32);
  EXPECT_GT(few.alone, many.alone);
  EXPECT_GT(few.decoding, many.decoding);
}

TEST_F(RefitCostTest, gives_the_reason_of_policies_that_refuse_and_of_no_others) {
  // Experts from 32 source shards into each target shard: more than NCCL M2N takes.
  const Scenario wide = parse_scenario(
      "model: {config: models/qwen3-30b-a3b.json, layers: 1}\n"
      "fabric: {preset: dgx-h100, hosts: 5}\n"
      "train: {gpus: 32, ep: 32, etp: 1}\n"
      "generate: {gpus: 8, tp: 4}\n",
      project_folder() / "scenarios/wide.yaml");
  const Refit wide_refit = resolve(wide);
  EXPECT_EQ(RefitCosts(wide_refit, calibration, 4, *find_policy("striped")).refused(), "");
  EXPECT_NE(RefitCosts(wide_refit, calibration, 4, *find_policy("m2n-uniform")).refused(), "");
}

}  // namespace
}  // namespace isthmus::report
