#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"
#include "tests/model/families/family_testing.hpp"

namespace isthmus::refit_tensors_test {
namespace {

using Shape = std::vector<std::int64_t>;
using testing::read_config;

bool by_name(const TensorPattern& pattern) { return pattern.role == Role::bulk; }
bool everything(const TensorPattern&) { return true; }

nlohmann::json deepseek_config() {
  return {{"model_type", "deepseek_v3"},
          {"hidden_size", 8},
          {"num_hidden_layers", 3},
          {"vocab_size", 10},
          {"intermediate_size", 12},
          {"moe_intermediate_size", 6},
          {"n_routed_experts", 4},
          {"n_shared_experts", 1},
          {"first_k_dense_replace", 1},
          {"tie_word_embeddings", false},
          {"num_attention_heads", 2},
          {"q_lora_rank", 5},
          {"kv_lora_rank", 3},
          {"qk_nope_head_dim", 2},
          {"qk_rope_head_dim", 1},
          {"v_head_dim", 2},
          {"num_nextn_predict_layers", 1}};
}

nlohmann::json qwen_text_config() {
  return {{"hidden_size", 8},
          {"num_hidden_layers", 2},
          {"vocab_size", 10},
          {"moe_intermediate_size", 6},
          {"shared_expert_intermediate_size", 6},
          {"num_experts", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 2},
          {"full_attention_interval", 2},
          {"linear_num_key_heads", 2},
          {"linear_key_head_dim", 2},
          {"linear_num_value_heads", 2},
          {"linear_value_head_dim", 2},
          {"linear_conv_kernel_dim", 4},
          {"mtp_num_hidden_layers", 1},
          {"tie_word_embeddings", false}};
}

nlohmann::json qwen_wrapper_config() {
  return {{"model_type", "qwen3_5_moe"},
          {"text_config", qwen_text_config()},
          {"vision_config",
           {{"hidden_size", 4},
            {"intermediate_size", 6},
            {"depth", 2},
            {"in_channels", 3},
            {"temporal_patch_size", 2},
            {"patch_size", 5},
            {"num_position_embeddings", 9},
            {"out_hidden_size", 8},
            {"spatial_merge_size", 2}}}};
}

nlohmann::json gpt_oss_config() {
  nlohmann::json config = testing::dense_case_config("gpt_oss");
  config["num_local_experts"] = 4;
  config["attention_bias"] = true;
  return config;
}

std::map<std::string, RefitTensor> by_full_name(const std::vector<RefitTensor>& tensors) {
  std::map<std::string, RefitTensor> map;
  for (const RefitTensor& tensor : tensors)
    EXPECT_TRUE(map.emplace(tensor.name, tensor).second) << tensor.name;
  return map;
}

std::int64_t elements(const std::vector<RefitTensor>& tensors) {
  std::int64_t sum = 0;
  for (const RefitTensor& tensor : tensors) {
    std::int64_t product = 1;
    for (const std::int64_t extent : tensor.shape) product *= extent;
    sum += product;
  }
  return sum;
}

TEST(RefitTensors, experts_of_a_layer_and_projection_are_stacked) {
  const auto tensors = by_full_name(refit_tensors(read_config(deepseek_config()), {}, by_name));
  const RefitTensor& gate = tensors.at("model.layers.2.mlp.experts.gate_proj.weight");
  EXPECT_EQ(gate.shape, (Shape{4, 6, 8}));
  EXPECT_EQ(gate.role, Role::bulk);
  EXPECT_EQ(gate.tensor_parallel, TensorParallel::rows);
  EXPECT_EQ(gate.home, Home::layer);
  EXPECT_EQ(gate.layer, 2);
  EXPECT_TRUE(gate.expert);
  EXPECT_EQ(gate.parts, 4);
  const RefitTensor& down = tensors.at("model.layers.1.mlp.experts.down_proj.weight");
  EXPECT_EQ(down.shape, (Shape{4, 8, 6}));
  EXPECT_EQ(down.tensor_parallel, TensorParallel::columns);
  const RefitTensor& dense = tensors.at("model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(dense.shape, (Shape{8, 12}));
  EXPECT_FALSE(dense.expert);
  EXPECT_EQ(dense.parts, 1);
  EXPECT_EQ(tensors.at("model.layers.1.mlp.gate.weight").parts, 1);
  EXPECT_FALSE(tensors.at("model.layers.1.mlp.gate.weight").expert);
}

TEST(RefitTensors, fused_gate_and_up_travel_as_two_tensors) {
  nlohmann::json config = qwen_text_config();
  config["model_type"] = "qwen3_5_moe_text";
  const auto tensors = by_full_name(refit_tensors(read_config(config), {}, by_name));
  for (const std::string name : {"gate_proj", "up_proj"}) {
    const RefitTensor& half = tensors.at("model.layers.1.mlp.experts." + name + ".weight");
    EXPECT_EQ(half.shape, (Shape{4, 6, 8}));
    EXPECT_EQ(half.tensor_parallel, TensorParallel::rows);
    EXPECT_EQ(half.role, Role::bulk);
    EXPECT_TRUE(half.expert);
    EXPECT_EQ(half.parts, 1);
  }
  const RefitTensor& down = tensors.at("model.layers.1.mlp.experts.down_proj.weight");
  EXPECT_EQ(down.shape, (Shape{4, 8, 6}));
  EXPECT_EQ(down.tensor_parallel, TensorParallel::columns);
}

TEST(RefitTensors, transposed_experts_travel_as_out_by_in) {
  nlohmann::json config = gpt_oss_config();
  const auto tensors = by_full_name(refit_tensors(read_config(config), {}, by_name));
  EXPECT_EQ(tensors.at("model.layers.0.mlp.experts.gate_proj.weight").shape, (Shape{4, 12, 8}));
  EXPECT_EQ(tensors.at("model.layers.0.mlp.experts.up_proj.weight").shape, (Shape{4, 12, 8}));
  EXPECT_EQ(tensors.at("model.layers.0.mlp.experts.down_proj.weight").shape, (Shape{4, 8, 12}));
  EXPECT_EQ(tensors.at("model.layers.0.mlp.experts.gate_up_proj_bias").shape, (Shape{4, 24}));
  EXPECT_EQ(tensors.at("model.layers.0.mlp.experts.down_proj_bias").shape, (Shape{4, 8}));
  EXPECT_TRUE(tensors.at("model.layers.0.mlp.experts.down_proj_bias").expert);
}

TEST(RefitTensors, come_embedding_first_then_by_layer_then_the_last_stage) {
  const Inventory inventory = read_config(deepseek_config());
  const std::vector<RefitTensor> tensors = refit_tensors(inventory, {true, true}, by_name);
  ASSERT_FALSE(tensors.empty());
  EXPECT_EQ(tensors.front().name, "model.embed_tokens.weight");
  const auto stage = [](const RefitTensor& tensor) {
    return tensor.home == Home::first_stage ? -1 : tensor.home == Home::last_stage ? 1'000 : tensor.layer;
  };
  EXPECT_TRUE(std::is_sorted(tensors.begin(), tensors.end(), [&](const RefitTensor& a, const RefitTensor& b) {
    return stage(a) < stage(b);
  }));
  std::vector<std::string> second_layer;
  for (const RefitTensor& tensor : tensors) {
    if (tensor.layer == 1) second_layer.push_back(tensor.name);
  }
  std::vector<std::string> in_inventory_order;
  for (const TensorPattern& pattern : inventory.patterns) {
    if (std::find(pattern.layers.begin(), pattern.layers.end(), 1) == pattern.layers.end()) continue;
    std::string name = pattern.name;
    name.replace(name.find("{l}"), 3, "1");
    if (name.find(".{e}") != std::string::npos) name.erase(name.find(".{e}"), 4);
    in_inventory_order.push_back(name);
  }
  EXPECT_EQ(second_layer, in_inventory_order);
}

TEST(RefitTensors, mtp_takes_part_on_request_on_the_last_stage_and_in_misc) {
  const Inventory inventory = read_config(deepseek_config());
  for (const RefitTensor& tensor : refit_tensors(inventory, {}, by_name)) {
    EXPECT_NE(tensor.name.substr(0, 15), "model.layers.3.");
  }
  std::size_t found = 0;
  for (const RefitTensor& tensor : refit_tensors(inventory, {.mtp = true, .vision = false}, everything)) {
    if (tensor.name.substr(0, 15) != "model.layers.3.") continue;
    ++found;
    EXPECT_EQ(tensor.home, Home::last_stage);
    EXPECT_EQ(tensor.role, Role::misc);
    EXPECT_EQ(tensor.layer, -1);
  }
  EXPECT_EQ(found, 9U + 2 + 3 + 3 + 6);  // norms and attention, router, experts, shared experts, ends
}

TEST(RefitTensors, a_layer_pattern_past_the_decoder_goes_to_the_last_stage) {
  Inventory inventory;
  inventory.layers = 2;
  inventory.patterns.push_back(
      {"model.layers.{l}.x", {3}, Dtype::bf16, Role::mtp, TensorParallel::replicated, Home::layer, {1, 2}});
  const std::vector<RefitTensor> tensors = refit_tensors(inventory, {.mtp = true, .vision = false}, by_name);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].home, Home::layer);
  EXPECT_EQ(tensors[1].home, Home::last_stage);
  EXPECT_EQ(tensors[1].name, "model.layers.2.x");
}

TEST(RefitTensors, vision_takes_part_on_request_on_the_first_stage_within_four_dimensions) {
  const Inventory inventory = read_config(qwen_wrapper_config());
  const auto without = refit_tensors(inventory, {}, by_name);
  const auto with = refit_tensors(inventory, {.mtp = false, .vision = true}, everything);
  EXPECT_EQ(elements(without), totals(inventory).parameters);
  EXPECT_EQ(2 * elements(with), totals(inventory).payload_bytes.value);
  for (const RefitTensor& tensor : with) {
    EXPECT_LE(tensor.shape.size(), max_dimensions);
    if (!tensor.name.starts_with("model.visual.")) continue;
    EXPECT_EQ(tensor.home, Home::first_stage);
    EXPECT_EQ(tensor.role, Role::misc);
  }
  EXPECT_EQ(by_full_name(with).at("model.visual.patch_embed.proj.weight").shape, (Shape{4, 3, 2, 25}));
  EXPECT_TRUE(by_full_name(with).contains("model.visual.blocks.1.norm2.bias"));
}

TEST(RefitTensors, the_callers_rule_decides_what_is_bulk) {
  const Inventory inventory = read_config(deepseek_config());
  const auto attention = [](const TensorPattern& p) { return p.name.find("self_attn") != std::string::npos; };
  for (const RefitTensor& tensor : refit_tensors(inventory, {}, attention)) {
    EXPECT_EQ(tensor.role == Role::bulk, tensor.name.find("self_attn") != std::string::npos) << tensor.name;
  }
}

TEST(RefitTensors, move_every_element_once_under_any_rule) {
  for (const nlohmann::json& config : {deepseek_config(), qwen_wrapper_config(), gpt_oss_config()}) {
    const Inventory inventory = read_config(config);
    EXPECT_EQ(elements(refit_tensors(inventory, {}, by_name)), totals(inventory).parameters);
    EXPECT_EQ(elements(refit_tensors(inventory, {}, everything)), totals(inventory).parameters);
    std::int64_t all = 0;
    for (const TensorPattern& pattern : inventory.patterns) all += pattern.count() * pattern.elements();
    EXPECT_EQ(elements(refit_tensors(inventory, {true, true}, by_name)), all);
  }
}

TEST(RefitTensors, key_and_value_projections_tell_their_heads) {
  const auto tensors =
      by_full_name(refit_tensors(read_config(testing::dense_case_config("qwen3")), {}, by_name));
  EXPECT_EQ(tensors.at("model.layers.1.self_attn.k_proj.weight").key_value_heads, 2);
  EXPECT_EQ(tensors.at("model.layers.1.self_attn.v_proj.weight").key_value_heads, 2);
  EXPECT_EQ(tensors.at("model.layers.1.self_attn.q_proj.weight").key_value_heads, 0);
}

}  // namespace
}  // namespace isthmus::refit_tensors_test
