#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {
namespace {

using enum TensorParallel;

ModelCase gpt_oss_case() {
  const std::int64_t layers = Draw::size(), hidden = Draw::size(1, 20), words = Draw::size(1, 50);
  const std::int64_t inner = Draw::size(1, 30), experts = Draw::size();
  const std::int64_t groups = Draw::size(), keys = Draw::size(), head = Draw::size();
  const bool biases = Draw::flag();
  ModelCase model;
  model.layers = static_cast<int>(layers);
  model.config = {{"model_type", "gpt_oss"},
                  {"hidden_size", hidden},
                  {"num_hidden_layers", layers},
                  {"vocab_size", words},
                  {"intermediate_size", inner},
                  {"num_local_experts", experts},
                  {"num_attention_heads", groups * keys},
                  {"num_key_value_heads", keys},
                  {"head_dim", head},
                  {"attention_bias", biases},
                  {"tie_word_embeddings", false}};
  model.add("model.embed_tokens.weight", {words, hidden}, vocabulary);
  model.add("model.norm.weight", {hidden});
  model.add("lm_head.weight", {words, hidden}, vocabulary);
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    const std::string attention = layer + "self_attn.", mlp = layer + "mlp.";
    model.add(layer + "input_layernorm.weight", {hidden});
    model.add(layer + "post_attention_layernorm.weight", {hidden});
    add_attention(model, attention, hidden, groups * keys * head, keys * head, groups * keys * head);
    if (biases) {
      model.add(attention + "q_proj.bias", {groups * keys * head}, rows);
      model.add(attention + "k_proj.bias", {keys * head}, rows);
      model.add(attention + "v_proj.bias", {keys * head}, rows);
      model.add(attention + "o_proj.bias", {hidden});
    }
    model.add(attention + "sinks", {groups * keys}, rows);
    model.add(mlp + "router.weight", {experts, hidden});
    model.add(mlp + "router.bias", {experts});
    model.add(mlp + "experts.gate_up_proj", {experts, hidden, 2 * inner}, rows);
    model.add(mlp + "experts.gate_up_proj_bias", {experts, 2 * inner}, rows);
    model.add(mlp + "experts.down_proj", {experts, inner, hidden}, columns);
    model.add(mlp + "experts.down_proj_bias", {experts, hidden});
  }
  return model;
}

TEST(GptOss, inventory_is_that_of_a_plain_loop) { expect_family("gpt_oss", gpt_oss_case); }

}  // namespace
}  // namespace isthmus::testing
