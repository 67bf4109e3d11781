#include <gtest/gtest.h>

#include "tests/model/families/moe_case.hpp"

namespace isthmus::testing {
namespace {

using enum TensorParallel;

ModelCase deepseek_case(const std::string& architecture) {
  const std::int64_t heads = Draw::size(), query_rank = Draw::size(), rank = Draw::size(),
                     plain = Draw::size();
  const std::int64_t rotary = Draw::size(), value = Draw::size();
  return moe_case(
      architecture,
      {{"num_attention_heads", heads},
       {"q_lora_rank", query_rank},
       {"kv_lora_rank", rank},
       {"qk_nope_head_dim", plain},
       {"qk_rope_head_dim", rotary},
       {"v_head_dim", value}},
      [=](ModelCase& model, const std::string& layer, std::int64_t hidden) {
        model.add(layer + "self_attn.q_a_proj.weight", {query_rank, hidden});
        model.add(layer + "self_attn.q_a_layernorm.weight", {query_rank});
        model.add(layer + "self_attn.q_b_proj.weight", {heads * (plain + rotary), query_rank}, rows);
        model.add(layer + "self_attn.kv_a_proj_with_mqa.weight", {rank + rotary, hidden});
        model.add(layer + "self_attn.kv_a_layernorm.weight", {rank});
        model.add(layer + "self_attn.kv_b_proj.weight", {heads * (plain + value), rank}, rows);
        model.add(layer + "self_attn.o_proj.weight", {hidden, heads * value}, columns);
      });
}

TEST(DeepseekV3, inventory_is_that_of_a_plain_loop) {
  expect_family("deepseek_v3", [] { return deepseek_case("deepseek_v3"); });
  expect_family("kimi_k2", [] { return deepseek_case("kimi_k2"); });
}

TEST(DeepseekV3, refuses_models_that_the_formulas_do_not_cover) {
  nlohmann::json config = {{"model_type", "deepseek_v3"}, {"hidden_size", 8},
                           {"num_hidden_layers", 3},      {"vocab_size", 10},
                           {"intermediate_size", 12},     {"moe_intermediate_size", 4},
                           {"n_routed_experts", 4},       {"n_shared_experts", 1},
                           {"first_k_dense_replace", 1},  {"tie_word_embeddings", false},
                           {"num_attention_heads", 2},    {"q_lora_rank", 4},
                           {"kv_lora_rank", 4},           {"qk_nope_head_dim", 2},
                           {"qk_rope_head_dim", 2},       {"v_head_dim", 2}};
  EXPECT_EQ(refusal(config), "accepted");
  const std::vector<std::pair<std::string, nlohmann::json>> bad{
      {"moe_layer_freq", 2},     {"first_k_dense_replace", 4}, {"tie_word_embeddings", true},
      {"attention_bias", true},  {"q_lora_rank", nullptr},     {"topk_method", "greedy"},
      {"n_shared_experts", 0},   {"n_routed_experts", 0},      {"num_nextn_predict_layers", -1},
      {"n_routed_experts", 1e9}, {"v_head_dim", "128"},        {"tie_word_embeddings", nullptr},
  };
  for (const auto& [key, value] : bad) {
    nlohmann::json changed = config;
    changed[key] = value;
    EXPECT_NE(refusal(changed).find(key + ": found "), std::string::npos) << key << ": " << refusal(changed);
  }
}

}  // namespace
}  // namespace isthmus::testing
