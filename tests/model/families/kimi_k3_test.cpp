#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {
namespace {

using enum TensorParallel;

struct Sizes {
  std::int64_t layers = Draw::size(), dense = Draw::size(0, layers), hidden = Draw::size(1, 20);
  std::int64_t words = Draw::size(1, 50), inner = Draw::size(1, 30), expert_inner = Draw::size(1, 30);
  std::int64_t experts = Draw::size(), shared = Draw::size(1, 3), latent = Draw::size(1, 10);
  std::int64_t delta_heads = Draw::size(), delta_head = Draw::size(), kernel = Draw::size(),
               heads = Draw::size();
  std::int64_t query_rank = Draw::size(), rank = Draw::size(), plain = Draw::size(), rotary = Draw::size();
  std::int64_t value = Draw::size();
  bool gate = Draw::flag(), norm = Draw::flag();
};

nlohmann::json text_config(const Sizes& s) {
  return {{"hidden_size", s.hidden},
          {"num_hidden_layers", s.layers},
          {"vocab_size", s.words},
          {"intermediate_size", s.inner},
          {"moe_intermediate_size", s.expert_inner},
          {"num_experts", s.experts},
          {"num_shared_experts", s.shared},
          {"routed_expert_hidden_size", s.latent},
          {"first_k_dense_replace", s.dense},
          {"num_attention_heads", s.heads},
          {"q_lora_rank", s.query_rank},
          {"kv_lora_rank", s.rank},
          {"qk_nope_head_dim", s.plain},
          {"qk_rope_head_dim", s.rotary},
          {"v_head_dim", s.value},
          {"mla_use_output_gate", s.gate},
          {"latent_moe_use_norm", s.norm},
          {"tie_word_embeddings", false},
          {"linear_attn_config",
           {{"num_heads", s.delta_heads},
            {"head_dim", s.delta_head},
            {"short_conv_kernel_size", s.kernel},
            {"use_full_rank_gate", true},
            {"kda_layers", nlohmann::json::array()},
            {"full_attn_layers", nlohmann::json::array()}}}};
}

void add_delta(ModelCase& model, const std::string& attention, const Sizes& s) {
  const std::int64_t inner = s.delta_heads * s.delta_head;
  for (const std::string which : {"q", "k", "v"}) {
    model.add(attention + which + "_proj.weight", {inner, s.hidden}, rows);
    model.add(attention + which + "_conv1d.weight", {inner, 1, s.kernel}, rows, Dtype::f32);
  }
  model.add(attention + "A_log", {128}, replicated, Dtype::f32);
  model.add(attention + "dt_bias", {inner}, rows, Dtype::f32);
  model.add(attention + "f_a_proj.weight", {s.delta_head, s.hidden});
  model.add(attention + "f_b_proj.weight", {inner, s.delta_head}, rows);
  model.add(attention + "b_proj.weight", {s.delta_heads, s.hidden}, rows);
  model.add(attention + "g_proj.weight", {inner, s.hidden}, rows);
  model.add(attention + "o_norm.weight", {s.delta_head}, replicated, Dtype::f32);
  model.add(attention + "o_proj.weight", {s.hidden, inner}, columns);
}

void add_full(ModelCase& model, const std::string& attention, const Sizes& s) {
  model.add(attention + "q_a_proj.weight", {s.query_rank, s.hidden});
  model.add(attention + "q_a_layernorm.weight", {s.query_rank});
  model.add(attention + "q_b_proj.weight", {s.heads * (s.plain + s.rotary), s.query_rank}, rows);
  model.add(attention + "kv_a_proj_with_mqa.weight", {s.rank + s.rotary, s.hidden});
  model.add(attention + "kv_a_layernorm.weight", {s.rank});
  model.add(attention + "kv_b_proj.weight", {s.heads * (s.plain + s.value), s.rank}, rows);
  model.add(attention + "o_proj.weight", {s.hidden, s.heads * s.value}, columns);
  if (s.gate) model.add(attention + "g_proj.weight", {s.heads * s.value, s.hidden}, rows);
}

void add_moe(ModelCase& model, const std::string& moe, const Sizes& s) {
  model.add(moe + "gate.weight", {s.experts, s.hidden});
  model.add(moe + "gate.e_score_correction_bias", {s.experts}, replicated, Dtype::f32);
  for (std::int64_t e = 0; e < s.experts; ++e) {
    const std::string expert = moe + "experts." + std::to_string(e) + ".";
    model.add(expert + "w1.weight", {s.expert_inner, s.latent}, rows);
    model.add(expert + "w3.weight", {s.expert_inner, s.latent}, rows);
    model.add(expert + "w2.weight", {s.latent, s.expert_inner}, columns);
  }
  add_mlp(model, moe + "shared_experts.", s.hidden, s.expert_inner * s.shared);
  model.add(moe + "routed_expert_down_proj.weight", {s.latent, s.hidden});
  model.add(moe + "routed_expert_up_proj.weight", {s.hidden, s.latent});
  if (s.norm) model.add(moe + "routed_expert_norm.weight", {s.latent});
}

void add_vision(ModelCase& model) {
  const std::int64_t width = Draw::size(), inner = Draw::size(), depth = Draw::size(),
                     attention = Draw::size();
  const std::int64_t patch = Draw::size(), height = Draw::size(), across = Draw::size(), text = Draw::size();
  const std::int64_t merged_width = Draw::size(), rows_merged = Draw::size(1, 3),
                     columns_merged = Draw::size(1, 3);
  const std::int64_t merged = merged_width * rows_merged * columns_merged;
  model.config["vision_config"] = {{"vt_hidden_size", width},
                                   {"vt_intermediate_size", inner},
                                   {"vt_num_hidden_layers", depth},
                                   {"qkv_hidden_size", attention},
                                   {"patch_size", patch},
                                   {"init_pos_emb_height", height},
                                   {"init_pos_emb_width", across},
                                   {"text_hidden_size", text},
                                   {"mm_hidden_size", merged_width},
                                   {"merge_kernel_size", {rows_merged, columns_merged}}};
  model.add("vision_tower.patch_embed.proj.weight", {width, 3, patch, patch});
  model.add("vision_tower.patch_embed.pos_emb.weight", {height, across, width});
  for (std::int64_t l = 0; l < depth; ++l) {
    const std::string block = "vision_tower.encoder.blocks." + std::to_string(l) + ".";
    model.add(block + "norm0.weight", {width});
    model.add(block + "norm1.weight", {width});
    model.add(block + "wqkv.weight", {3 * attention, width});
    model.add(block + "wo.weight", {width, attention});
    model.add(block + "mlp.fc0.weight", {inner, width});
    model.add(block + "mlp.fc1.weight", {width, inner});
  }
  model.add("vision_tower.encoder.final_layernorm.weight", {width});
  model.add("mm_projector.proj.0.weight", {merged, merged});
  model.add("mm_projector.proj.2.weight", {text, merged});
  model.add("mm_projector.post_norm.weight", {text});
}

ModelCase kimi_case() {
  const Sizes s;
  ModelCase model;
  model.layers = static_cast<int>(s.layers);
  model.config = {{"model_type", "kimi_k3"}, {"text_config", text_config(s)}};
  const std::string prefix = "language_model.model.";
  model.add(prefix + "embed_tokens.weight", {s.words, s.hidden}, vocabulary);
  for (std::int64_t l = 0; l < s.layers; ++l) {
    const std::string layer = prefix + "layers." + std::to_string(l) + ".";
    const bool delta = Draw::flag();
    nlohmann::json& lists = model.config["text_config"]["linear_attn_config"];
    lists[delta ? "kda_layers" : "full_attn_layers"].push_back(l + 1);
    model.add(layer + "input_layernorm.weight", {s.hidden});
    model.add(layer + "post_attention_layernorm.weight", {s.hidden});
    if (delta) add_delta(model, layer + "self_attn.", s);
    if (!delta) add_full(model, layer + "self_attn.", s);
    for (const std::string where : {"self_attention", "mlp"}) {
      model.add(layer + where + "_res_norm.weight", {s.hidden});
      model.add(layer + where + "_res_proj.weight", {1, s.hidden});
    }
    if (l < s.dense) add_mlp(model, layer + "mlp.", s.hidden, s.inner);
    if (l >= s.dense) add_moe(model, layer + "block_sparse_moe.", s);
  }
  for (const std::string name : {"norm", "output_attn_res_norm"})
    model.add(prefix + name + ".weight", {s.hidden});
  model.add(prefix + "output_attn_res_proj.weight", {1, s.hidden});
  model.add("language_model.lm_head.weight", {s.words, s.hidden}, vocabulary);
  add_vision(model);
  return model;
}

TEST(KimiK3, inventory_is_that_of_a_plain_loop) { expect_family("kimi_k3", kimi_case); }

TEST(KimiK3, refuses_layer_lists_that_are_no_partition) {
  nlohmann::json config = {{"model_type", "kimi_k3"},
                           {"text_config",
                            {{"hidden_size", 4},
                             {"num_hidden_layers", 3},
                             {"num_experts", 2},
                             {"first_k_dense_replace", 1},
                             {"tie_word_embeddings", false}}}};
  const auto refused = [&](const nlohmann::json& delta, const nlohmann::json& full,
                           const std::string& message) {
    config["text_config"]["linear_attn_config"] = {{"kda_layers", delta}, {"full_attn_layers", full}};
    EXPECT_NE(refusal(config).find("text_config.linear_attn_config." + message), std::string::npos)
        << refusal(config);
  };
  refused({1, 2}, {2, 3}, "kda_layers: found 4 layers here and in full_attn_layers, some of them twice");
  refused({1}, {2}, "kda_layers: found 2 layers");
  refused({0, 1}, {2}, "kda_layers: found 0 in the list");
  refused({1}, {2, 4}, "full_attn_layers: found 4 in the list");
  refused({1}, {2, "3"}, "full_attn_layers: found \"3\" in the list");
}

}  // namespace
}  // namespace isthmus::testing
