// `golden` against recordings of NeMo RL's golden reshard. It cuts by the balanced rule, so the layouts are
// read with that rule.

#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/nemo_oracle.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

class NemoGoldenOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (oracles.empty()) GTEST_SKIP() << "no published data";
    ASSERT_GE(oracles.size(), 17U);
  }
  const std::vector<nlohmann::json> oracles = test::nemo_oracles("nemo-golden");
};

nlohmann::json broadcasts_json(const Refit& refit, const Plan& plan) {
  nlohmann::json broadcasts = nlohmann::json::array();
  for (const Step& step : plan.patterns.front().steps) {
    if (step.kind != StepKind::broadcast) continue;
    nlohmann::json shape = nlohmann::json::array();
    for (std::size_t d = 0; d < step.region.dimensions; ++d)
      shape.push_back(step.region.end[d] - step.region.begin[d]);
    broadcasts.push_back({{"root", global_rank(plan.instances.front(), step.source).value},
                          {"shape", shape},
                          {"bytes", refit.geometries[0].source.bytes(step.region).value}});
  }
  return broadcasts;
}

TEST_F(NemoGoldenOracle, broadcasts_the_same_regions_from_the_same_roots_in_the_same_order) {
  for (const nlohmann::json& oracle : oracles) {
    SCOPED_TRACE(oracle["case"].get<std::string>());
    const Refit refit = test::make_refit(test::nemo_case(oracle, ChunkRule::balanced));
    const Plan plan = std::get<Plan>(plan_golden(refit));
    EXPECT_EQ(broadcasts_json(refit, plan), oracle["output"]["broadcasts"]);
    std::int64_t bytes = 0;
    for (const nlohmann::json& broadcast : broadcasts_json(refit, plan))
      bytes += broadcast["bytes"].get<std::int64_t>();
    EXPECT_EQ(bytes, oracle["output"]["broadcast_bytes"]);
  }
}

TEST_F(NemoGoldenOracle, takes_out_the_recorded_region_on_every_target_rank) {
  for (const nlohmann::json& oracle : oracles) {
    SCOPED_TRACE(oracle["case"].get<std::string>());
    const test::RefitCase refit_case = test::nemo_case(oracle, ChunkRule::balanced);
    const Refit refit = test::make_refit(refit_case);
    const Plan plan = std::get<Plan>(plan_golden(refit));
    nlohmann::json unpacked;
    for (const Step& step : plan.patterns.front().steps) {
      if (step.kind != StepKind::unpack) continue;
      unpacked[std::to_string(global_rank(plan.instances.front(), step.target).value)] =
          test::box_json(step.region);
    }
    EXPECT_EQ(unpacked, oracle["output"]["destination_regions"]);
    EXPECT_EQ(test::regions_json(refit_case.tensors[0].source), oracle["output"]["source_regions"]);
    EXPECT_TRUE(check(refit, plan).proven());
    EXPECT_TRUE(test::Twin(refit).run(plan).correct());
  }
}

TEST_F(NemoGoldenOracle, is_a_reference_only_where_both_chunk_rules_agree) {
  for (const nlohmann::json& oracle : oracles) {
    SCOPED_TRACE(oracle["case"].get<std::string>());
    const TensorSpec balanced = test::nemo_case(oracle, ChunkRule::balanced).tensors[0];
    const TensorSpec ceil = test::nemo_case(oracle, ChunkRule::ceil).tensors[0];
    const bool agree =
        test::same_regions(test::regions_json(balanced.source), test::regions_json(ceil.source)) &&
        test::same_regions(test::regions_json(balanced.target), test::regions_json(ceil.target));
    EXPECT_EQ(agree, oracle["output"]["regions_equal_chunk_rule"]);
  }
}

}  // namespace
}  // namespace isthmus
