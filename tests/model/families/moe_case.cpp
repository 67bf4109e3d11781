#include "tests/model/families/moe_case.hpp"

namespace isthmus::testing {

using enum TensorParallel;

ModelCase moe_case(
    const std::string& architecture, const nlohmann::json& attention_keys,
    const std::function<void(ModelCase&, const std::string& layer, std::int64_t hidden)>& add_attention) {
  const std::int64_t layers = Draw::size(), dense = Draw::size(0, layers), appended = Draw::size(0, 2);
  const std::int64_t hidden = Draw::size(1, 20), words = Draw::size(1, 50), inner = Draw::size(1, 30);
  const std::int64_t expert_inner = Draw::size(1, 30), experts = Draw::size(), shared = Draw::size(1, 3);
  ModelCase model;
  model.layers = static_cast<int>(layers);
  model.config = {{"model_type", architecture},     {"hidden_size", hidden},
                  {"num_hidden_layers", layers},    {"vocab_size", words},
                  {"intermediate_size", inner},     {"moe_intermediate_size", expert_inner},
                  {"n_routed_experts", experts},    {"n_shared_experts", shared},
                  {"first_k_dense_replace", dense}, {"tie_word_embeddings", false}};
  if (appended > 0 || Draw::flag()) model.config["num_nextn_predict_layers"] = appended;
  if (Draw::flag()) model.config["moe_layer_freq"] = 1;
  model.config.update(attention_keys);

  model.add("model.embed_tokens.weight", {words, hidden}, vocabulary);
  model.add("model.norm.weight", {hidden});
  model.add("lm_head.weight", {words, hidden}, vocabulary);
  for (std::int64_t l = 0; l < layers + appended; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    model.add(layer + "input_layernorm.weight", {hidden});
    model.add(layer + "post_attention_layernorm.weight", {hidden});
    add_attention(model, layer, hidden);
    if (l < dense) {
      add_mlp(model, layer + "mlp.", hidden, inner);
    } else {
      model.add(layer + "mlp.gate.weight", {experts, hidden});
      model.add(layer + "mlp.gate.e_score_correction_bias", {experts}, replicated, Dtype::f32);
      add_mlp(model, layer + "mlp.shared_experts.", hidden, expert_inner * shared);
      for (std::int64_t e = 0; e < experts; ++e) {
        add_mlp(model, layer + "mlp.experts." + std::to_string(e) + ".", hidden, expert_inner);
      }
    }
    if (l < layers) continue;
    model.add(layer + "embed_tokens.weight", {words, hidden}, vocabulary);
    model.add(layer + "enorm.weight", {hidden});
    model.add(layer + "hnorm.weight", {hidden});
    model.add(layer + "eh_proj.weight", {hidden, 2 * hidden});
    model.add(layer + "shared_head.norm.weight", {hidden});
    model.add(layer + "shared_head.head.weight", {words, hidden}, vocabulary);
  }
  return model;
}

}  // namespace isthmus::testing
