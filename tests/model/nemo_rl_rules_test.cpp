// Each of the 19 rules with a recipe that breaks it and one that keeps it; the base recipe keeps them all.

#include "model/nemo_rl_rules.hpp"

#include <gtest/gtest.h>

#include "model/scenario.hpp"

namespace isthmus {
namespace {

constexpr std::string_view base = R"(
policy:
  precision: bfloat16
  dtensor_cfg: {enabled: false}
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 2
  generation:
    backend: vllm
    colocated: {enabled: false, resources: {num_nodes: 1, gpus_per_node: 8}}
    vllm_kwargs: {}
    vllm_cfg: {precision: "${policy.precision}", tensor_parallel_size: 4}
cluster: {num_nodes: 2, gpus_per_node: 8}
)";

std::vector<InputFault> faults_with(const std::vector<Override>& settings) {
  YamlDocument document(base, "recipe.yaml");
  for (const auto& [key, value] : settings) document.set(key, value);
  return nemo_rl_faults(RecipeSettings(document, "recipe.yaml"));
}

std::vector<std::string> keys_of(const std::vector<InputFault>& faults) {
  std::vector<std::string> keys;
  for (const InputFault& fault : faults) keys.push_back(fault.where.key);
  return keys;
}

struct Rule {
  int number;
  std::vector<Override> breaks;
  std::string key, found;
  std::vector<std::vector<Override>> keeps;  // changes of what breaks it, each of which mends it
};

const std::string generation = "policy.generation.";
const std::string megatron = "policy.megatron_cfg.";
const std::string vllm = "policy.generation.vllm_cfg.";
const Override fp8{vllm + "precision", "fp8"};
const Override stored_fp8{megatron + "fp8_cfg.fp8_param", "true"};
const Override mx{vllm + "is_mx", "true"};

std::vector<Rule> engine_rules() {
  return {
      {1, {{generation + "colocated.enabled", "true"}}, generation + "colocated.enabled", "true", {}},
      {2, {{generation + "backend", "trtllm"}}, generation + "backend", "trtllm", {}},
      {3,
       {{generation + "vllm_kwargs.enable_eplb", "true"}},
       generation + "vllm_kwargs.enable_eplb",
       "true",
       {{{generation + "vllm_kwargs.enable_eplb", "null"}}}},
      {4, {{generation + "real_quant", "True"}}, generation + "real_quant", "True", {}},
      {5, {{megatron + "enabled", "false"}}, megatron + "enabled", "false", {}},
      {6, {{"policy.dtensor_cfg.enabled", "true"}}, "policy.dtensor_cfg.enabled", "true", {}},
  };
}

std::vector<Rule> megatron_rules() {
  const std::string etp = megatron + "expert_tensor_parallel_size";
  const std::string layout = megatron + "pipeline_model_parallel_layout";
  const std::string interleave = megatron + "virtual_pipeline_model_parallel_size";
  const std::string embedding = megatron + "account_for_embedding_in_pipeline_split";
  const std::string loss = megatron + "account_for_loss_in_pipeline_split";
  return {
      {7, {{etp, "2"}}, etp, "2", {{{etp, "1"}}, {{etp, "null"}}}},
      {8, {{layout, "[[embedding], [decoder]]"}}, layout, "a list", {{{layout, "null"}}}},
      {9, {{interleave, "2"}}, interleave, "2", {{{interleave, "1"}}, {{interleave, "null"}}}},
      {10, {{embedding, "true"}}, embedding, "true", {{{embedding, "false"}}}},
      {11, {{loss, "true"}}, loss, "true", {{{loss, "false"}}}},
  };
}

std::vector<Rule> precision_rules() {
  const std::string precision = vllm + "precision", recipe = megatron + "fp8_cfg.fp8_recipe";
  return {
      {12,
       {{precision, "int8"}},
       precision,
       "int8",
       {{{precision, "auto"}}, {{precision, "bf16"}}, {{precision, "bfloat16"}}, {{precision, "null"}}}},
      {13, {fp8, stored_fp8, mx, {recipe, "blockwise"}}, mx.first, "true", {{{mx.first, "false"}}}},
      {14, {fp8, stored_fp8, {recipe, "tensorwise"}}, recipe, "tensorwise", {{{recipe, "blockwise"}}}},
      {15,
       {fp8, mx, {"policy.precision", "float16"}},
       "policy.precision",
       "float16",
       {{{"policy.precision", "bfloat16"}}}},
      {16, {fp8}, precision, "fp8", {{mx}, {{precision, "bfloat16"}}}},
      {17, {stored_fp8}, stored_fp8.first, "true", {{{stored_fp8.first, "false"}}}},
  };
}

std::vector<Rule> generation_rules() {
  const std::string ep = vllm + "expert_parallel_size", pp = vllm + "pipeline_parallel_size";
  return {
      {18, {{ep, "2"}}, ep, "2", {{{ep, "1"}}, {{ep, "4"}}, {{vllm + "tensor_parallel_size", "2"}}}},
      {19, {{pp, "2"}}, pp, "2", {{{pp, "1"}}}},
  };
}

std::vector<Rule> all_rules() {
  std::vector<Rule> rules = engine_rules();
  for (const auto& more : {megatron_rules(), precision_rules(), generation_rules()}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return rules;
}

TEST(NemoRlRules, base_recipe_keeps_all) { EXPECT_EQ(keys_of(faults_with({})), std::vector<std::string>{}); }

TEST(NemoRlRules, each_is_broken_by_its_recipe_and_mended_by_each_allowed_value) {
  EXPECT_EQ(all_rules().size(), 19U);
  for (const Rule& rule : all_rules()) {
    SCOPED_TRACE(rule.number);
    const std::vector<InputFault> faults = faults_with(rule.breaks);
    ASSERT_EQ(keys_of(faults), std::vector<std::string>{rule.key});
    EXPECT_EQ(faults.front().found, rule.found);
    EXPECT_NE(faults.front().allowed, "");
    EXPECT_NE(faults.front().change, "");
    EXPECT_EQ(faults.front().where.file.substr(0, 6), "--set ");
    for (const std::vector<Override>& change : rule.keeps) {
      std::vector<Override> settings = rule.breaks;
      settings.insert(settings.end(), change.begin(), change.end());
      EXPECT_EQ(keys_of(faults_with(settings)), std::vector<std::string>{});
    }
  }
}

TEST(NemoRlRules, are_all_listed_at_once_in_their_order) {
  std::vector<Override> settings;
  std::vector<std::string> expected;
  for (const Rule& rule : all_rules()) {
    const bool switches_others_off = rule.number == 2 || rule.number == 5;
    const bool one_of_many = rule.number >= 13 && rule.number <= 16;  // exclude rule 17
    if (switches_others_off || one_of_many) continue;
    settings.insert(settings.end(), rule.breaks.begin(), rule.breaks.end());
    expected.push_back(rule.key);
  }
  EXPECT_EQ(keys_of(faults_with(settings)), expected);
}

TEST(NemoRlRules, of_an_engine_that_is_not_used_are_not_asked) {
  const std::vector<InputFault> without_megatron =
      faults_with({{megatron + "enabled", "false"}, {megatron + "expert_tensor_parallel_size", "2"}, fp8});
  EXPECT_EQ(keys_of(without_megatron), std::vector<std::string>{megatron + "enabled"});
  const std::vector<InputFault> without_vllm =
      faults_with({{generation + "backend", "trtllm"}, {vllm + "expert_parallel_size", "3"}});
  EXPECT_EQ(keys_of(without_vllm), std::vector<std::string>{generation + "backend"});
}

TEST(NemoRlRules, blockwise_fp8_to_fp8_and_bf16_to_mxfp8_are_supported) {
  EXPECT_TRUE(faults_with({fp8, stored_fp8, {megatron + "fp8_cfg.fp8_recipe", "blockwise"}}).empty());
  EXPECT_TRUE(faults_with({fp8, mx}).empty());
}

}  // namespace
}  // namespace isthmus
