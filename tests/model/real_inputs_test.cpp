// NeMo RL's own recipes and NCCL M2N's own configurations: which are supported, and why the others are not.
// The files lie outside the repository: in $ISTHMUS_DATA, else in ../shared/data. Without them the tests are
// skipped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit.hpp"
#include "model/validation.hpp"
#include "tests/support/published_data.hpp"

namespace isthmus {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct RealInput {
  std::string file, model;
  std::vector<std::string> refused;  // keys of all violations; empty: supported
  int train_gpus = 0, generate_gpus = 0;
};

const std::string colocated = "policy.generation.colocated.enabled";

std::vector<RealInput> recipes() {
  return {
      {"performance/grpo-deepseek-v3-64n8g-async-1off", "deepseek-v3", {}, 256, 256},
      {"performance/grpo-qwen3-235b-32n8g-async-1off", "qwen3-235b-a22b", {}, 128, 128},
      {"performance/grpo-qwen3-30ba3b-4n8g-async-1off", "qwen3-30b-a3b", {}, 16, 16},
      {"performance/grpo-qwen3-30ba3b-4n4g-async-1off-mxfp8-rollout", "qwen3-30b-a3b", {}, 8, 8},
      {"performance/grpo-qwen3-32b-8n8g-async-1off", "qwen3-32b", {}, 32, 32},
      {"performance/grpo-llama3.1-8b-instruct-2n8g-async-1off", "llama3.1-8b", {}, 8, 8},
      {"performance/grpo-nemotron3-super-120BA12B-32n8g-async-1off",
       "nemotron3-super-120b-a12b",
       {},
       64,
       192},
      // rule 16: generation reads FP8 that training does not store
      {"performance/grpo-deepseek-v3-64n8g-fp8-async-1off",
       "deepseek-v3",
       {"policy.generation.vllm_cfg.precision"}},
      {"performance/grpo-deepseek-v3-32n8g", "deepseek-v3", {colocated}},
      {"performance/grpo-qwen3-235b-16n8g", "qwen3-235b-a22b", {colocated}},
      {"performance/grpo-qwen3-30ba3b-4n8g", "qwen3-30b-a3b", {colocated}},
      {"performance/grpo-qwen3-30ba3b-4n4g-mxfp8-rollout", "qwen3-30b-a3b", {colocated}},
      {"performance/grpo-qwen3-32b-4n8g", "qwen3-32b", {colocated}},
      {"performance/grpo-llama3.1-8b-instruct-2n8g", "llama3.1-8b", {colocated}},
      // rules 1 and 18: generation EP64 beside TP16
      {"grpo-qwen3.5-397ba17b-32n8g-megatron.v2",
       "qwen3.5-397b-a17b",
       {colocated, "policy.generation.vllm_cfg.expert_parallel_size"}},
      // rule 2, and both sides on one host
      {"grpo-qwen2.5-0.5b-1n4g-megatron-trtllm-noncolocated-async",
       "qwen3-4b",
       {"policy.generation.backend", "policy.generation.colocated.resources.gpus_per_node"}},
  };
}

std::vector<RealInput> m2n_configurations() {
  return {
      {"dsv3-256gpus-gb200", "deepseek-v3", {}, 128, 128},
      {"qwen235b-TP2CP2PP4EP16-128gpus-gb200", "qwen3-235b-a22b", {}, 64, 64},
      {"qwen3-32b-tp4pp4dp2-to-tp4dp8-64gpus-h100", "qwen3-32b", {}, 32, 32},
      {"qwen3-32b-dp1-tp4-to-dp1-tp4", "qwen3-32b", {}, 4, 4},
  };
}

class RealInputs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(data_folder() / "nemo_rl") || !fs::exists(data_folder() / "m2n_configs"))
      GTEST_SKIP() << "no recipes and configurations in " << data_folder() << "; set ISTHMUS_DATA";
  }

  static Input read(const RealInput& real, const fs::path& file,
                    const std::vector<Override>& overrides = {}) {
    return read_input(data_folder() / file, overrides, data_folder() / "models" / real.model / "config.json");
  }

  static void expect_verdict(const RealInput& real, const fs::path& file, RuleSet rules) {
    SCOPED_TRACE(real.file);
    const Input input = read(real, file);
    const Validation validation = validate(input, rules);
    std::vector<std::string> keys;
    for (const InputFault& fault : validation.violations) {
      keys.push_back(fault.where.key);
      EXPECT_GT(fault.where.line, 0) << fault.where.key;
    }
    EXPECT_THAT(keys, ElementsAreArray(real.refused));
    if (!real.refused.empty()) return;
    const Refit refit = resolve(require_scenario(input));
    EXPECT_EQ(refit.train_ranks, to_size(real.train_gpus));
    EXPECT_EQ(refit.generate_ranks, to_size(real.generate_gpus));
    EXPECT_FALSE(refit.tensors.empty());
  }
};

TEST_F(RealInputs, recipes_are_supported_or_refused_for_all_their_reasons) {
  for (const RealInput& real : recipes()) {
    expect_verdict(real, fs::path("nemo_rl/recipes/llm") / (real.file + ".yaml"), RuleSet::nemo_rl);
  }
}

TEST_F(RealInputs, m2n_configurations_keep_m2n_limits) {
  for (const RealInput& real : m2n_configurations()) {
    expect_verdict(real, fs::path("m2n_configs") / (real.file + ".json"), RuleSet::m2n);
  }
}

TEST_F(RealInputs, deepseek_recipe_is_the_main_scenario) {
  const RealInput deepseek = recipes().front();
  const Input input = read(deepseek, "nemo_rl/recipes/llm/" + deepseek.file + ".yaml");
  const Refit refit = resolve(require_scenario(input));
  const Refit expected = resolve(read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml"));
  EXPECT_EQ(refit.geometries, expected.geometries);
  EXPECT_EQ(refit.gpu_of_rank, expected.gpu_of_rank);
}

TEST_F(RealInputs, a_recipe_with_mxfp8_generation_quantises_on_receipt) {
  const RealInput mx = recipes().at(3);
  const Input input = read(mx, "nemo_rl/recipes/llm/" + mx.file + ".yaml");
  EXPECT_TRUE(require_scenario(input).generate->quantize_mxfp8);
  EXPECT_EQ(require_scenario(input).model->precision, WirePrecision::bf16);
  EXPECT_THAT(input.assumptions, Contains(HasSubstr("quantises to MXFP8 on receipt (attention, too,")));
}

TEST_F(RealInputs, ep32_of_nemotron_exceeds_the_fan_in_of_m2n) {
  const RealInput super = recipes().at(6);
  const fs::path file = "nemo_rl/recipes/llm/" + super.file + ".yaml";
  const Validation validation = validate(read(super, file), RuleSet::m2n);
  ASSERT_EQ(validation.violations.size(), 1U);
  EXPECT_EQ(validation.violations.front().where.key, "policy.megatron_cfg.expert_model_parallel_size");
  EXPECT_THAT(validation.violations.front().found, HasSubstr("meets 32 source shards, M2N allows 16"));
}

TEST_F(RealInputs, a_manifest_serves_as_the_model_of_an_m2n_configuration) {
  const fs::path folder = data_folder() / "m2n_configs";
  const Input input =
      read_input(folder / "qwen3-32b-dp1-tp4-to-dp1-tp4.json", {}, folder / "qwen3-32b.model.json");
  EXPECT_TRUE(validate(input, RuleSet::m2n).valid());
  EXPECT_EQ(resolve(require_scenario(input)).tensors.size(), 707U);  // as many as the manifest lists
}

TEST_F(RealInputs, experts_by_other_names_are_noted) {
  const Input input =
      read_input(project_folder() / "scenarios/deepseek-v3-h100.yaml",
                 {{"train", "{gpus: 256, ep: 8, etp: 1}"}, {"generate", "{gpus: 256, tp: 8}"}},
                 data_folder() / "models/kimi-k3/config.json");
  EXPECT_THAT(validate(input).notes, Contains(HasSubstr("they travel as misc")));
}

}  // namespace
}  // namespace isthmus
