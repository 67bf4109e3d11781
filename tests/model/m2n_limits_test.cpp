// The smallest layouts at and just past each of NCCL M2N's limits.

#include "model/m2n_limits.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/validation.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string name, shape, source, target;
  std::string key, found;  // of the only violation; empty: none
};

Scenario scenario_of(const Case& layouts) {
  return parse_scenario(fmt::format("tensor: {{shape: {}, dtype: bf16}}\n"
                                    "source: {{{}}}\ntarget: {{{}}}\n"
                                    "fabric: {{preset: dgx-h100, hosts: 32}}\n",
                                    layouts.shape, layouts.source, layouts.target),
                        "case.yaml");
}

std::string line(int ranks, int first, std::string_view placement) {
  return fmt::format("mesh: [{}], first_rank: {}, placements: [{}]", ranks, first, placement);
}

std::vector<Case> meeting_cases() {
  return {
      {"32 shards to 4: fan-in 8", "[64]", line(32, 0, "shard(0)"), line(4, 32, "shard(0)"), "", ""},
      {"32 shards to a replica each", "[64]", line(32, 0, "shard(0)"), line(4, 32, "replicated"), "source",
       "tensor tensor: target shard 0 meets 32 source shards, M2N allows 16"},
      {"16 shards to a replica each", "[64]", line(16, 0, "shard(0)"), line(4, 16, "replicated"), "", ""},
      {"16 experts' ranks into tp", "[16, 16]", line(16, 0, "shard(0)"), line(16, 16, "shard(1)"), "", ""},
      {"32 experts' ranks into tp", "[32, 32]", line(32, 0, "shard(0)"), line(4, 32, "shard(1)"), "source",
       "meets 32 source shards"},
      {"17 shards to 2, which do not nest", "[34]", line(34, 0, "shard(0)"), line(2, 34, "shard(0)"),
       "source", "target shard 0 meets 17 source shards"},
      {"64 target shards for one source", "[64, 64]", line(1, 0, "replicated"), line(64, 8, "shard(0)"), "",
       ""},
      {"128 target shards for one source", "[128, 64]", line(1, 0, "replicated"), line(128, 8, "shard(0)"),
       "target", "source shard 0 meets 128 target shards, M2N allows 64"},
  };
}

std::vector<Case> form_cases() {
  return {
      {"three dimensions", "[4, 4, 4]", line(2, 0, "shard(2)"), line(2, 2, "shard(0)"), "", ""},
      {"four dimensions", "[4, 4, 4, 4]", line(2, 0, "shard(2)"), line(2, 2, "shard(0)"), "source",
       "4 dimensions"},
      {"two axes, one sharded", "[8]", "mesh: [2, 2], first_rank: 0, placements: [replicated, shard(0)]",
       line(2, 4, "shard(0)"), "", ""},
      {"two sharded axes", "[8, 8]", "mesh: [2, 2], first_rank: 0, placements: [shard(0), shard(1)]",
       line(2, 4, "shard(0)"), "source", "2 sharded axes"},
      {"three axes", "[8]", line(2, 0, "shard(0)"),
       "mesh: [2, 1, 2], first_rank: 2, placements: [replicated, replicated, shard(0)]", "target",
       "a mesh of 3 axes"},
      {"uneven shards", "[7]", line(2, 0, "shard(0)") + ", chunk_rule: ceil", line(1, 2, "replicated"),
       "source", "shards of different sizes"},
      {"ranks with a gap", "[8]", "mesh: [2], ranks: [0, 2], placements: [shard(0)]",
       line(1, 3, "replicated"), "source", "rank 2 after rank 0"},
      {"ranks out of order", "[8]", line(1, 0, "replicated"),
       "mesh: [2], ranks: [2, 1], placements: [shard(0)]", "target", "rank 1 after rank 2"},
      {"sides that share a rank", "[8]", line(2, 0, "shard(0)"), line(2, 1, "shard(0)"), "target",
       "ranks from 1 on, inside the source's"},
  };
}

void expect_verdict(const Case& layouts) {
  SCOPED_TRACE(layouts.name);
  const Scenario scenario = scenario_of(layouts);
  const std::vector<InputFault> faults = m2n_faults(scenario, resolve(scenario));
  if (layouts.key.empty()) {
    EXPECT_TRUE(faults.empty()) << faults.front().found;
    return;
  }
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front().where.key, layouts.key);
  EXPECT_THAT(faults.front().found, HasSubstr(layouts.found));
  EXPECT_NE(faults.front().change, "");
}

TEST(M2nLimits, between_shards_count_those_that_meet) {
  for (const Case& layouts : meeting_cases()) expect_verdict(layouts);
}

TEST(M2nLimits, of_form_judge_each_side) {
  for (const Case& layouts : form_cases()) expect_verdict(layouts);
}

TEST(M2nLimits, of_fan_in_is_32_inside_one_nvlink_domain) {
  Scenario scenario = scenario_of({"", "[64]", line(32, 0, "shard(0)"), line(4, 32, "replicated"), "", ""});
  scenario.fabric = {"gb200-nvl72", 18, std::nullopt, std::nullopt};
  EXPECT_TRUE(m2n_faults(scenario, resolve(scenario)).empty());
}

TEST(M2nLimits, name_the_change_that_would_do) {
  const Scenario scenario =
      scenario_of({"", "[64]", line(32, 0, "shard(0)"), line(4, 32, "replicated"), "", ""});
  EXPECT_EQ(m2n_faults(scenario, resolve(scenario)).front().change, "16 source shards");
}

// d1 p4 t2 to d1 p2 t4, 8 to 8 ranks: pipeline stages need not be equal on both sides.
TEST(M2nLimits, accept_sides_of_different_pipeline_depth) {
  std::string tensors = "tensors:\n";
  for (int stage = 0; stage < 4; ++stage) {
    tensors += fmt::format(
        "  - tensor: {{name: l{0}, shape: [8, 8], dtype: bf16}}\n"
        "    source: {{{1}}}\n    target: {{{2}}}\n",
        stage, line(2, 2 * stage, "shard(0)"), line(4, 8 + 4 * (stage / 2), "shard(0)"));
  }
  Input input;
  input.scenario = parse_scenario(tensors + "fabric: {preset: dgx-h100, hosts: 2}\n", "case.yaml");
  for (const RuleSet rules : {RuleSet::general, RuleSet::nemo_rl, RuleSet::m2n}) {
    EXPECT_TRUE(validate(input, rules).valid());
  }
}

TEST(M2nLimits, collapse_the_tensors_of_a_refit_to_one_fault_per_key) {
  const Scenario scenario =
      read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml",
                    {{"train", "{gpus: 256, ep: 32, etp: 1, pp: 8, layers_first: 7, layers_last: 6}"}});
  const std::vector<InputFault> faults = m2n_faults(scenario, resolve(scenario));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().where.key, "train.ep");
  EXPECT_THAT(faults.front().found,
              HasSubstr("meets 32 source shards, M2N allows 16 (and 173 more tensors)"));
  EXPECT_EQ(faults.front().change, "16 source shards");
}

}  // namespace
}  // namespace isthmus
