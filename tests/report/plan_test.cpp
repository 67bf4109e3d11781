#include "report/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/scenario_texts.hpp"

namespace isthmus::report {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// Ranks 0 and 1 hold halves; rank 2 and 3 gather them in staging and load.
const std::string gathered = R"({"format": "isthmus-plan", "version": 1, "policy": "mine", "refit": 4,
"scenario": ["name: two", "tensor: {name: w, shape: [4], dtype: bf16}",
  "source: {mesh: [2], first_rank: 0, placements: [shard(0)]}",
  "target: {mesh: [2], first_rank: 2, placements: [replicated]}", "fabric: {preset: dgx-h100, hosts: 1}"],
"lanes": [{"name": "wire"}, {"name": "", "window": 2, "coalesce": true}],
"buffers": [{"name": "pool", "size": 64}],
"patterns": [{"members": [["t0", "t1"]], "steps": [
  {"kind": "send", "source": "s0", "target": "t0", "to": "staging", "region": [[0, 2]]},
  {"kind": "broadcast", "source": "t1", "members": 0, "from": "staging", "to": "staging",
   "region": [[2, 4]], "group": 2},
  {"kind": "all_gather", "members": 0, "from": "staging", "to": "staging", "region": [[0, 4]],
   "group": 3, "after": [0]},
  {"kind": "load", "source": "t1", "region": [[0, 4]], "lane": 1, "group": 1, "parts": 2, "after": [1, 2]},
  {"kind": "pack", "source": "s1", "target": "t0", "region": [[2, 4]], "lane": 5}]}],
"instances": [{"tensor": "w", "pattern": 0, "buffer": 0, "offset": 8, "refit": 3}]}
)";

PlanFile file() { return plan_from_json(gathered, "plan.json"); }

TEST(PlanDocument, sums_up_a_plan) {
  EXPECT_EQ(plan_document(file(), {}),
            "two: plan of policy mine for refit 4: 1 tensors, 4 ranks\n"
            "5 steps move 28 B; 1 patterns, 1 instances\n"
            "  send                1 steps           4 B\n"
            "  pack                1 steps           4 B\n"
            "  broadcast           1 steps           4 B\n"
            "  all_gather          1 steps           8 B\n"
            "  load                1 steps           8 B\n"
            "  lane wire: 3 steps, 16 B, 1 groups at a time\n"
            "  lane 1: 1 steps, 8 B, 2 groups at a time, coalescing\n"
            "  staging buffer pool: 64 B\n"
            "The steps themselves: --tensor NAME, --rank R\n");
}

TEST(PlanDocument, puts_every_kind_of_step_into_words) {
  EXPECT_EQ(
      plan_document(file(), {{}, TensorId{0}, false}),
      "tensor w: bf16 [4], instance 0, pattern 0, source ranks from 0 on, target ranks from 2 on, staged in "
      "pool at byte 8, refit 3\n"
      "  step 0: send rank 0 source -> rank 2 staging [0:2], 4 B, lane wire, group 0\n"
      "  step 1: broadcast rank 3 staging -> ranks 2-3 staging [2:4], 4 B, lane wire, group 2\n"
      "  step 2: all_gather ranks 2-3, staging -> staging [0:4], 8 B, lane wire, group 3, after 0\n"
      "  step 3: load rank 3 staging -> target [0:4], 8 B, lane 1, group 1, 2 parts, after 1, 2\n"
      "  step 4: pack rank 1 source -> rank 2 staging [2:4], 4 B, lane 5 (of 2), group 0\n");
}

TEST(PlanDocument, shows_a_rank_by_lane_and_group) {
  const std::string text = plan_document(file(), {Rank{3}, {}, false});
  EXPECT_THAT(text, HasSubstr("rank 3 (GPU 3): 3 steps\n  w: step 1: "));
  EXPECT_LT(text.find("step 2:"), text.find("step 3:"));
  EXPECT_EQ(plan_document(file(), {Rank{1}, {}, false}).find("step 0:"), std::string::npos);
}

TEST(PlanDocument, carries_the_numbers_as_json) {
  const Json document = Json::parse(plan_document(file(), {Rank{3}, TensorId{0}, true}));
  EXPECT_EQ(document["steps"], 5);
  EXPECT_EQ(document["bytes"], 28);
  EXPECT_EQ(document["refit"], 4);
  EXPECT_EQ(document["lanes"][1]["window"], 2);
  ASSERT_EQ(document["listed_steps"].size(), 3U);
  EXPECT_EQ(document["listed_steps"][0]["members"], Json::array({2, 3}));
  EXPECT_EQ(document["listed_steps"][2]["after"], Json::array({1, 2}));
  EXPECT_EQ(document["listed_steps"][2]["region"], Json::parse("[[0, 4]]"));
  EXPECT_FALSE(Json::parse(plan_document(file(), {{}, {}, true})).contains("listed_steps"));
}

TEST(PlanDocument, says_what_differs_and_no_more) {
  const PlanFile first = file();
  const auto compared = [&](const std::string& from, const std::string& to) {
    const PlanFile second = plan_from_json(replaced(gathered, from, to), "second.json");
    return plan_difference_document({"a", "b", first, second}, plan_difference(first, second), false);
  };
  EXPECT_EQ(compared("\"mine\"", "\"yours\""), "a and b: the same steps for each of 1 tensors\n");
  EXPECT_EQ(
      compared("\"group\": 3", "\"group\": 4"),
      "a; b:\n  step: tensor w: step 2: all_gather ranks 2-3, staging -> staging [0:4], 8 B, lane wire, "
      "group "
      "3, after 0; step 2: all_gather ranks 2-3, staging -> staging [0:4], 8 B, lane wire, group 4, after "
      "0\n");
  EXPECT_EQ(compared("\"offset\": 8", "\"offset\": 16"),
            "a; b:\n  step: tensor w: staged elsewhere, or for another refit\n");
  EXPECT_EQ(compared("\"size\": 64", "\"size\": 32"),
            "a; b:\n  buffers: 1 staging buffers: pool of 64 bytes; 1 staging buffers: pool of 32 bytes\n");
  EXPECT_THAT(compared("bf16", "f32"), HasSubstr("refit: tensor w: plan is for dtype bf16; asked for f32"));
  EXPECT_THAT(
      compared("\"tensor\": \"w\", \"pattern\": 0", "\"tensor\": \"w\", \"pattern\": 0, \"target_base\": 1"),
      HasSubstr("pair: rank 0 to rank 1: 0 bytes; 4 bytes"));
}

}  // namespace
}  // namespace isthmus::report
