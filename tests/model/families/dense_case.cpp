#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {

using enum TensorParallel;

void add_attention(ModelCase& model, const std::string& layer, std::int64_t hidden, std::int64_t query_rows,
                   std::int64_t key_rows, std::int64_t output_columns) {
  model.add(layer + "q_proj.weight", {query_rows, hidden}, rows);
  model.add(layer + "k_proj.weight", {key_rows, hidden}, rows);
  model.add(layer + "v_proj.weight", {key_rows, hidden}, rows);
  model.add(layer + "o_proj.weight", {hidden, output_columns}, columns);
}

void add_mlp(ModelCase& model, const std::string& name, std::int64_t hidden, std::int64_t inner) {
  model.add(name + "gate_proj.weight", {inner, hidden}, rows);
  model.add(name + "up_proj.weight", {inner, hidden}, rows);
  model.add(name + "down_proj.weight", {hidden, inner}, columns);
}

ModelCase dense_case(const std::string& architecture, bool query_key_norms) {
  const std::int64_t layers = Draw::size(), words = Draw::size(1, 50), inner = Draw::size(1, 30);
  const std::int64_t groups = Draw::size(), keys = Draw::size(), head = Draw::size();
  const bool derived = Draw::flag(), tied = Draw::flag();
  const std::int64_t hidden = derived ? groups * keys * head : Draw::size(1, 40);
  ModelCase model;
  model.config = {{"model_type", architecture},  {"hidden_size", hidden},
                  {"num_hidden_layers", layers}, {"vocab_size", words},
                  {"intermediate_size", inner},  {"num_attention_heads", groups * keys},
                  {"num_key_value_heads", keys}, {"tie_word_embeddings", tied}};
  if (!derived) model.config["head_dim"] = head;
  model.layers = static_cast<int>(layers);

  model.add("model.embed_tokens.weight", {words, hidden}, vocabulary);
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    model.add(layer + "input_layernorm.weight", {hidden});
    model.add(layer + "post_attention_layernorm.weight", {hidden});
    add_attention(model, layer + "self_attn.", hidden, groups * keys * head, keys * head,
                  groups * keys * head);
    if (query_key_norms) model.add(layer + "self_attn.q_norm.weight", {head});
    if (query_key_norms) model.add(layer + "self_attn.k_norm.weight", {head});
    add_mlp(model, layer + "mlp.", hidden, inner);
  }
  model.add("model.norm.weight", {hidden});
  if (!tied) model.add("lm_head.weight", {words, hidden}, vocabulary);
  return model;
}

nlohmann::json dense_case_config(const std::string& architecture) {
  return {{"model_type", architecture}, {"hidden_size", 8},        {"num_hidden_layers", 2},
          {"vocab_size", 10},           {"intermediate_size", 12}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2},   {"head_dim", 2},           {"tie_word_embeddings", false}};
}

}  // namespace isthmus::testing
