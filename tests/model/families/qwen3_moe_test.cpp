#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {
namespace {

using enum TensorParallel;

ModelCase qwen3_moe_case() {
  const std::int64_t layers = Draw::size(), hidden = Draw::size(1, 20), words = Draw::size(1, 50),
                     step = Draw::size(1, 3);
  const std::int64_t inner = Draw::size(1, 30), expert_inner = Draw::size(1, 30), experts = Draw::size();
  const std::int64_t groups = Draw::size(), keys = Draw::size(), head = Draw::size(),
                     dense = Draw::size(0, layers - 1);
  ModelCase model;
  model.layers = static_cast<int>(layers);
  model.config = {{"model_type", "qwen3_moe"},   {"hidden_size", hidden},
                  {"num_hidden_layers", layers}, {"vocab_size", words},
                  {"intermediate_size", inner},  {"moe_intermediate_size", expert_inner},
                  {"num_experts", experts},      {"num_attention_heads", groups * keys},
                  {"num_key_value_heads", keys}, {"head_dim", head},
                  {"decoder_sparse_step", step}, {"mlp_only_layers", {dense}},
                  {"attention_bias", false},     {"tie_word_embeddings", false}};
  model.add("model.embed_tokens.weight", {words, hidden}, vocabulary);
  model.add("model.norm.weight", {hidden});
  model.add("lm_head.weight", {words, hidden}, vocabulary);
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    model.add(layer + "input_layernorm.weight", {hidden});
    model.add(layer + "post_attention_layernorm.weight", {hidden});
    add_attention(model, layer + "self_attn.", hidden, groups * keys * head, keys * head,
                  groups * keys * head);
    model.add(layer + "self_attn.q_norm.weight", {head});
    model.add(layer + "self_attn.k_norm.weight", {head});
    if (l == dense || (l + 1) % step != 0) {
      add_mlp(model, layer + "mlp.", hidden, inner);
      continue;
    }
    model.add(layer + "mlp.gate.weight", {experts, hidden});
    for (std::int64_t e = 0; e < experts; ++e) {
      add_mlp(model, layer + "mlp.experts." + std::to_string(e) + ".", hidden, expert_inner);
    }
  }
  return model;
}

TEST(Qwen3Moe, inventory_is_that_of_a_plain_loop) { expect_family("qwen3_moe", qwen3_moe_case); }

}  // namespace
}  // namespace isthmus::testing
