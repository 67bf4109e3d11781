// A correct plan file, broken by hand once at a time: each fault is refused by name, malformed files when
// they are read, wrong plans by the proof; and the unbroken twin is accepted.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "planner/plan_file.hpp"
#include "planner/policy.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

const std::string halves = R"(tensors:
  - tensor: {name: w, shape: [4, 2], dtype: bf16}
    source: {mesh: [2], first_rank: 0, placements: [shard(0)]}
    target: {mesh: [2], first_rank: 4, placements: [shard(1)]}
  - tensor: {name: bias, shape: [10], dtype: f32}
    source: {mesh: [2], first_rank: 0, placements: [replicated]}
    target: {mesh: [4], first_rank: 4, placements: [shard(0)], chunk_rule: ceil}
fabric: {preset: dgx-h100, hosts: 1}
)";

/// The plan of p2p, as it is written.
std::string good_plan() {
  const Scenario scenario = parsed(halves);
  const Refit refit = resolve(scenario);
  return to_json(scenario, refit, std::get<Plan>(plan_p2p(refit)));
}

/// A plan by hand with what p2p does not use: gathers, dependencies, staging, a schedule, refit numbers.
const std::string rich_plan = R"({
  "format": "isthmus-plan",
  "version": 1,
  "policy": "by-hand",
  "refit": 2,
  "scenario": [
    "tensors:",
    "  - tensor: {name: a, shape: [4], dtype: bf16}",
    "    source: {mesh: [2], first_rank: 0, placements: [shard(0)]}",
    "    target: {mesh: [2], first_rank: 2, placements: [replicated]}",
    "  - tensor: {name: b, shape: [4], dtype: bf16}",
    "    source: {mesh: [2], first_rank: 0, placements: [shard(0)]}",
    "    target: {mesh: [2], first_rank: 2, placements: [replicated]}",
    "fabric: {preset: dgx-h100, hosts: 1}"
  ],
  "lanes": [{"name": "main", "window": 1}],
  "buffers": [{"name": "pool", "size": 8}],
  "patterns": [
    {"members": [["t0", "t1"]],
     "steps": [
      {"kind": "send", "source": "s0", "target": "t0", "region": [[0, 2]], "to": "staging"},
      {"kind": "send", "source": "s1", "target": "t1", "region": [[2, 4]], "to": "staging"},
      {"kind": "all_gather", "members": 0, "region": [[0, 4]], "from": "staging",
       "to": "target", "group": 1, "after": [0, 1]}
    ]}
  ],
  "instances": [
    {"tensor": "a", "pattern": 0, "buffer": 0, "schedule": [0, 0, 1]},
    {"tensor": "b", "pattern": 0, "buffer": 0, "group": 2}
  ]
}
)";

/// What is said about a text: the message of the fault in the file, else of the first violation, else "".
std::string said(const std::string& text) {
  try {
    const PlanFile file = plan_from_json(text, "plan.json");
    const Proof proof = check(file.refit, file.plan);
    return proof.proven() ? "" : proof.violations[0].message;
  } catch (const InputError& error) {
    return fmt::format("exit 2: {}", error.what());
  }
}

struct BrokenPlan {
  const char* name;
  const char* from;
  const char* to;
  const char* message;  // part of what is said; "exit 2: " where the file is malformed
};

void expect_refused(const std::string& good, const std::vector<BrokenPlan>& broken) {
  ASSERT_EQ(said(good), "");
  for (const BrokenPlan& each : broken) {
    const std::string found = said(replaced(good, each.from, each.to));
    EXPECT_NE(found.find(each.message), std::string::npos) << each.name << ": " << found;
    EXPECT_FALSE(found.empty()) << each.name;
  }
}

TEST(PlanFileFaults, of_form_are_refused_with_file_line_and_key) {
  expect_refused(
      good_plan(),
      {
          {"wrong format name", "isthmus-plan", "other-plan",
           "exit 2: plan.json:2: format: found 'other-plan'"},
          {"wrong format version", "\"version\": 1", "\"version\": 2",
           "exit 2: plan.json:3: version: found 2; allowed: 1, which is the one version"},
          {"unknown key", "\"lanes\"", "\"streams\"", "streams: found an unknown key; allowed: "},
          {"unknown key of a step", "\"region\"", "\"regions\"",
           "patterns.0.steps.0.regions: found an unknown key; allowed: region"},
          {"repeated key", "\"kind\": \"send\",", "\"kind\": \"send\", \"kind\": \"put\",",
           "kind: the key stands twice"},
          {"missing key", "\"source\": \"s0\", ", "", "patterns.0.steps.0.source: found nothing"},
          {"unknown kind", "\"send\"", "\"teleport\"", "kind: found 'teleport'; allowed: "},
          {"number as text", "\"pattern\": 0", "\"pattern\": \"0\"",
           "instances.0.pattern: found '0'; allowed: a whole number from 0 to 1"},
          {"text as number", "\"s0\"", "0", "source: found 0; allowed: s or t and a rank"},
          {"rank without a side", "\"s0\"", "\"0\"", "source: found '0'; allowed: s or t and a rank"},
          {"rank above all", "\"s0\"", "\"s1048576\"", "found 's1048576'; allowed: s or t and a rank"},
          {"negative group", "\"group\": 1", "\"group\": -1",
           "group: found -1; allowed: a whole number from 0"},
          {"fraction", "\"group\": 1", "\"group\": 1.5", "found a number that is no whole number"},
          {"huge count", "\"group\": 1", "\"group\": 99999999999999999999",
           "found a number that is no whole"},
          {"five dimensions", "[[0, 2], [0, 1]]", "[[0, 2], [0, 1], [0, 1], [0, 1], [0, 1]]",
           "region: found more than 4 items"},
          {"half a pair", "[[0, 2], [0, 1]]", "[[0, 2], [0]]", "region.1: found a list; allowed: a pair"},
          {"pattern that does not exist", "\"pattern\": 0", "\"pattern\": 2",
           "allowed: a whole number from 0 to 1"},
          {"tensor of another name", "{\"tensor\": \"w\"", "{\"tensor\": \"W\"",
           "instances.0.tensor: found 'W', which is none of the 2 tensors that the plan is for; allowed: w"},
          {"broken scenario", "shape: [4, 2]", "shap: [4, 2]", "exit 2: plan.json:8: tensors.0.tensor.shap"},
          {"scenario that does not resolve", "mesh: [2], first_rank: 0, placements: [shard(0)]",
           "mesh: [3], first_rank: 0, placements: [shard(0)]", "exit 2: plan.json:9: "},
          {"other dtype", "dtype: bf16", "dtype: bf61", "exit 2: plan.json:8: tensors.0.tensor.dtype"},
      });
}

TEST(PlanFileFaults, of_truncated_files_name_the_line) {
  const std::string good = good_plan();
  for (std::size_t size = 0; size + 1 < good.size(); size += 13) {
    const std::string found = said(good.substr(0, size));
    EXPECT_EQ(found.find("exit 2: plan.json"), 0U) << size << ": " << found;
  }
  EXPECT_NE(said(good.substr(0, good.size() / 2)).find("not JSON"), std::string::npos);
  EXPECT_NE(said("[]").find("found an empty list"), std::string::npos);
}

TEST(PlanFileFaults, of_content_are_violations) {
  expect_refused(
      good_plan(),
      {
          {"rank out of range", "\"target\": \"t0\"", "\"target\": \"t7\"", "names rank 11; there are 8"},
          {"rank that does not hold it", "\"source\": \"s0\"", "\"source\": \"s1\"", "step 0 reads"},
          {"wrong shape", "shape: [4, 2]", "shape: [4, 4]", "tensor w"},
          {"fewer dimensions", "shape: [4, 2]", "shape: [4]", ""},
          {"other chunk rule", "chunk_rule: ceil", "chunk_rule: balanced",
           "tensor bias, element (8) on rank 6: written by step 2, but its target shard is [6:8]"},
          {"other ranks", "\"pattern\": 0", "\"pattern\": 0, \"source_base\": 4", "tensor w"},
          {"region reversed", "[[0, 2], [0, 1]]", "[[2, 0], [0, 1]]",
           "step 0 has region [2:0, 0:1]; a box that has elements"},
          {"region outside", "[[0, 2], [0, 1]]", "[[0, 2], [0, 3]]", "step 0 has region [0:2, 0:3]"},
          {"lane that does not exist", "\"pattern\": 0", "\"pattern\": 0, \"lane\": 9",
           "instance 0 uses lanes up to 9; there are 1"},
          {"step that waits for itself", "[[0, 2], [0, 1]]", "[[0, 2], [0, 1]], \"after\": [0]",
           "step 0 waits for step 0; only earlier steps"},
          {"buffer that does not exist", "\"pattern\": 0", "\"pattern\": 0, \"buffer\": 0",
           "stages in buffer 0; there are 0"},
          {"tensor twice", "{\"tensor\": \"bias\"", "{\"tensor\": \"w\"", "tensor w"},
          {"stale refit", "\"pattern\": 0", "\"pattern\": 0, \"refit\": 3",
           "instance 0 moves version 3; the plan is for version 0"},
      });
}

TEST(PlanFileFaults, of_missing_and_repeated_steps_are_violations) {
  const std::string good = good_plan();
  const std::size_t begin = good.find("      {\"kind\""), end = good.find('\n', begin) + 1;
  const std::string step = good.substr(begin, end - begin);
  EXPECT_NE(said(replaced(good, step, "")).find("tensor w, element (0,0) on rank 4: "), std::string::npos);
  EXPECT_NE(said(replaced(good, step, step + step)).find("written twice, by steps 0 and 1"),
            std::string::npos);
  const std::size_t instance = good.find(",\n    {\"tensor\": \"bias\"");
  const std::string rest = good.substr(instance, good.find('}', instance) + 1 - instance);
  EXPECT_NE(said(replaced(good, rest, "")).find("plan covers 1 of 2 target tensors"), std::string::npos);
}

TEST(PlanFileFaults, of_order_staging_and_refit_are_violations) {
  expect_refused(
      rich_plan,
      {
          {"member twice", "[\"t0\", \"t1\"]", "[\"t0\", \"t0\"]", "has a rank twice among its members"},
          {"no members", "[\"t0\", \"t1\"]", "[]", "has no members"},
          {"member list that does not exist", "\"members\": 0", "\"members\": 1",
           "exit 2: plan.json:23: patterns.0.steps.2.members: found 1"},
          {"key of another kind", "\"members\": 0,", "\"members\": 0, \"target\": \"t0\",",
           "steps.2.target: found an unknown key"},
          {"dependency left out", "\"after\": [0, 1]", "\"after\": [0]", "step 2"},
          {"wait cycle", "\"schedule\": [0, 0, 1]", "\"schedule\": [1, 1, 0]", "wait"},
          {"cycle by dependency", "\"to\": \"staging\"}", "\"to\": \"staging\", \"after\": [2]}",
           "step 0 waits for step 2; only earlier steps"},
          {"buffer too small", "\"size\": 8", "\"size\": 6",
           "the staging needs bytes 0 to 8 of buffer pool, which has 6"},
          {"negative size", "\"size\": 8", "\"size\": -8", "exit 2: plan.json:17: buffers.0.size: found -8"},
          {"overwritten", "\"group\": 2", "\"group\": 0", "overwrites"},
          {"stale refit", "\"tensor\": \"a\", ", "\"tensor\": \"a\", \"refit\": 1, ",
           "instance 0 moves version 1; the plan is for version 2"},
          {"short schedule", "[0, 0, 1]", "[0, 0]",
           "instances.0.schedule: found a list of 2; allowed: a list of 3 groups"},
          {"long schedule", "[0, 0, 1]", "[0, 0, 1, 1]", "instances.0.schedule: found a longer list"},
          {"window of none", "\"window\": 1", "\"window\": 0", "lanes.0.window: found 0"},
          {"split that does not exist", "\"window\": 1", "\"split\": 0",
           "lane 0 (main) - split 0 - there are 0"},
          {"rank that never enters", "\"lanes\"", "\"splits\": [{\"callers\": [[0, 0], [1, 0]]}], \"lanes\"",
           "rank 2 of the parent never enters"},
          {"caller of three numbers", "\"lanes\"", "\"splits\": [{\"callers\": [[0, 0, 0]]}], \"lanes\"",
           "exit 2: plan.json:16: splits.0.callers.0: found more than 2 items"},
      });
}

TEST(PlanFileFaults, of_tensors_beside_a_scenario_that_names_them_are_refused) {
  const std::string text =
      replaced(rich_plan, "\"lanes\"", "\"tensors\": [], \"geometries\": [],\n\"lanes\"");
  EXPECT_NE(said(text).find("tensors beside a scenario that names them"), std::string::npos) << said(text);
}

TEST(PlanFileFaults, of_size_are_refused_before_anything_is_allocated) {
  // 40 million ranks in a few hundred bytes: one list of members, many steps and instances.
  std::string steps, instances;
  for (int i = 0; i < 400; ++i) steps += R"({"kind": "all_gather", "members": 0, "region": [[0, 4]]},)";
  for (int i = 0; i < 4000; ++i) instances += R"({"tensor": "a", "pattern": 0},)";
  std::string members;
  for (int i = 0; i < 400; ++i) members += fmt::format("\"t{}\",", i);
  std::string bomb = replaced(rich_plan, "[\"t0\", \"t1\"]", "[" + members + "\"t400\"]");
  bomb = replaced(bomb, "\"steps\": [", "\"steps\": [" + steps);
  bomb = replaced(bomb, "\"instances\": [", "\"instances\": [" + instances);
  EXPECT_NE(said(bomb).find("more than 268435456 ranks of all steps"), std::string::npos) << said(bomb);
  EXPECT_NE(said(std::string(100, '[')).find("nested deeper"), std::string::npos);
}

const std::string model_head = R"json({"format": "isthmus-plan", "version": 1, "policy": "p",
"scenario": ["model: {config: m.json}", "train: {gpus: 8}", "generate: {gpus: 8}",
 "fabric: {preset: dgx-h100, hosts: 2}"],
"geometries": [{"shape": [8, 2], "dtype": "bf16",
  "source": {"mesh": [8], "first_rank": 0, "placements": ["replicated"], "chunk_rule": "even"},
  "target": {"mesh": [8], "first_rank": 0, "placements": ["shard(0)"], "chunk_rule": "even"
}
}],
"tensors": [{"name": "w", "geometry": 0, "source_base": 0, "target_base": 8}],
"lanes": [{"name": "main"}], "patterns": [{"steps": [)json";

std::string model_plan() {
  std::string text = model_head;
  for (int i = 0; i < 8; ++i) {
    text +=
        fmt::format(R"({}{{"kind": "send", "source": "s{}", "target": "t{}", "region": [[{}, {}], [0, 2]]}})",
                    i == 0 ? "" : ",\n", i, i, i, i + 1);
  }
  return text + "]}],\n\"instances\": [{\"tensor\": \"w\", \"pattern\": 0}]}\n";
}

TEST(PlanFileFaults, of_layouts_and_tensors_are_refused_by_name) {
  expect_refused(
      model_plan(),
      {
          {"uneven", "[8, 2]", "[9, 2]",
           "geometries.0.target: found dimension 0 of 9 elements is not divided"},
          {"mesh bomb", "\"mesh\": [8]", "\"mesh\": [1048576, 1048576]", "mesh: found a larger mesh"},
          {"large tensor", "[8, 2]", "[1152921504606846976, 2]", "shape: found a tensor above 2^60 bytes"},
          {"all together", "[8, 2]", "[80000000000000000, 2]", "found more than 2^60 bytes"},
          {"dtype", "bf16", "bf17", "dtype: found 'bf17'; allowed: bf16"},
          {"placement", "shard(0)", "shard(4)",
           "placements.0: found 'shard(4)'; allowed: replicated or shard(0)"},
          {"chunk rule", "\"chunk_rule\": \"even\"", "\"chunk_rule\": \"fair\"", "chunk_rule: found 'fair'"},
          {"ranks twice", "\"first_rank\": 0", "\"first_rank\": 0, \"ranks\": [0]", "allowed: one of them"},
          {"rank beyond", "\"target_base\": 8", "\"target_base\": 9",
           "tensors.0: found rank 16; allowed: ranks below 16"},
          {"geometry", "\"geometry\": 0", "\"geometry\": 1",
           "geometry: found 1; allowed: a whole number from 0 to 0"},
          {"name twice", "\"target_base\": 8}",
           "\"target_base\": 8}, {\"name\": \"w\", \"geometry\": 0, \"source_base\": 0, \"target_base\": "
           "8}",
           "found 'w' twice"},
          {"no geometries", "\"geometries\"", "\"geometry\"", "geometry: found an unknown key"},
          {"other fabric", "hosts: 2", "hosts: 1", "fabric.hosts"},
      });
}

}  // namespace
}  // namespace isthmus
