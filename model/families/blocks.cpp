#include "model/families/blocks.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace isthmus::families {

using enum TensorParallel;

void add_ends(Patterns& patterns, const Ends& ends) {
  patterns.once(Home::first_stage, ends.prefix + "embed_tokens.weight", {ends.vocabulary, ends.hidden},
                vocabulary);
  patterns.once(Home::last_stage, ends.prefix + "norm.weight", {ends.hidden});
  if (!ends.tied) patterns.once(Home::last_stage, ends.head, {ends.vocabulary, ends.hidden}, vocabulary);
}

void add_layer_norms(Patterns& patterns, const Block& block, std::int64_t hidden) {
  patterns.each(block, "input_layernorm.weight", {hidden});
  patterns.each(block, "post_attention_layernorm.weight", {hidden});
}

GroupedAttention read_grouped_attention(const Config& config, IfMissing key_value_heads,
                                        IfMissing head_size) {
  GroupedAttention attention;
  attention.hidden = config.size("hidden_size");
  attention.heads = config.size("num_attention_heads", max_heads);
  attention.key_value_heads = key_value_heads == IfMissing::derive
                                  ? config.size_or("num_key_value_heads", attention.heads, max_heads)
                                  : config.size("num_key_value_heads", max_heads);
  if (attention.heads % attention.key_value_heads != 0) {
    config.refuse("num_key_value_heads", std::to_string(attention.key_value_heads),
                  fmt::format("a divisor of num_attention_heads, {}", attention.heads));
  }
  if (head_size == IfMissing::refuse || config.has("head_dim")) {
    attention.head_size = config.size("head_dim", max_heads);
  } else if (attention.hidden % attention.heads == 0) {
    attention.head_size = attention.hidden / attention.heads;
  } else {
    config.refuse("head_dim", "nothing",
                  fmt::format("a size, as num_attention_heads {} does not divide hidden_size {}",
                              attention.heads, attention.hidden));
  }
  return attention;
}

void add_grouped_attention(Patterns& patterns, const Block& block, const GroupedAttention& attention,
                           const std::string& name) {
  const std::int64_t inner = attention.heads * attention.head_size;
  const std::int64_t queries = inner * attention.query_scale;
  const std::int64_t keys = attention.key_value_heads * attention.head_size;
  patterns.each(block, name + "q_proj.weight", {queries, attention.hidden}, rows);
  patterns.key_value(block, name + "k_proj.weight", attention.key_value_heads, {keys, attention.hidden});
  patterns.key_value(block, name + "v_proj.weight", attention.key_value_heads, {keys, attention.hidden});
  patterns.each(block, name + "o_proj.weight", {attention.hidden, inner}, columns);
  if (attention.biases) {
    patterns.each(block, name + "q_proj.bias", {queries}, rows);
    patterns.key_value(block, name + "k_proj.bias", attention.key_value_heads, {keys});
    patterns.key_value(block, name + "v_proj.bias", attention.key_value_heads, {keys});
  }
  if (attention.query_key_norms) {
    patterns.each(block, name + "q_norm.weight", {attention.head_size});
    patterns.each(block, name + "k_norm.weight", {attention.head_size});
  }
}

LatentAttention read_latent_attention(const Config& config) {
  LatentAttention attention;
  attention.hidden = config.size("hidden_size");
  attention.heads = config.size("num_attention_heads", max_heads);
  attention.query_rank = config.size("q_lora_rank");
  attention.key_value_rank = config.size("kv_lora_rank");
  attention.plain_size = config.size("qk_nope_head_dim", max_heads);
  attention.rotary_size = config.size("qk_rope_head_dim", max_heads);
  attention.value_size = config.size("v_head_dim", max_heads);
  return attention;
}

void add_latent_attention(Patterns& patterns, const Block& block, const LatentAttention& attention) {
  const auto& [hidden, heads, query_rank, key_value_rank, plain_size, rotary_size, value_size] = attention;
  patterns.each(block, "self_attn.q_a_proj.weight", {query_rank, hidden});
  patterns.each(block, "self_attn.q_a_layernorm.weight", {query_rank});
  patterns.each(block, "self_attn.q_b_proj.weight", {heads * (plain_size + rotary_size), query_rank}, rows);
  patterns.each(block, "self_attn.kv_a_proj_with_mqa.weight", {key_value_rank + rotary_size, hidden});
  patterns.each(block, "self_attn.kv_a_layernorm.weight", {key_value_rank});
  patterns.each(block, "self_attn.kv_b_proj.weight", {heads * (plain_size + value_size), key_value_rank},
                rows);
  patterns.each(block, "self_attn.o_proj.weight", {hidden, heads * value_size}, columns);
}

void add_gated_mlp(Patterns& patterns, const Block& block, const std::string& name, std::int64_t hidden,
                   std::int64_t inner) {
  patterns.each(block, name + "gate_proj.weight", {inner, hidden}, rows);
  patterns.each(block, name + "up_proj.weight", {inner, hidden}, rows);
  patterns.each(block, name + "down_proj.weight", {hidden, inner}, columns);
}

void add_gated_experts(Patterns& patterns, const Block& block, const std::string& name, std::int64_t experts,
                       std::int64_t hidden, std::int64_t inner) {
  patterns.experts(block, name + "gate_proj.weight", experts, {inner, hidden}, rows);
  patterns.experts(block, name + "up_proj.weight", experts, {inner, hidden}, rows);
  patterns.experts(block, name + "down_proj.weight", experts, {hidden, inner}, columns);
}

void add_dense_model(const Config& config, Inventory& inventory, bool query_key_norms) {
  config.only("attention_bias", false);
  config.only("mlp_bias", false);
  GroupedAttention attention = read_grouped_attention(config, IfMissing::derive, IfMissing::derive);
  attention.query_key_norms = query_key_norms;
  const std::int64_t inner = config.size("intermediate_size");
  inventory.layers = static_cast<int>(config.size("num_hidden_layers", max_layers));

  Patterns patterns(inventory);
  const Block decoder{"model.layers.{l}.", layer_range(0, inventory.layers)};
  add_ends(patterns, {.prefix = "model.",
                      .vocabulary = config.size("vocab_size"),
                      .hidden = attention.hidden,
                      .tied = config.flag_or("tie_word_embeddings", false)});
  add_layer_norms(patterns, decoder, attention.hidden);
  add_grouped_attention(patterns, decoder, attention);
  add_gated_mlp(patterns, decoder, "mlp.", attention.hidden, inner);
}

MoeAfterDense read_moe_after_dense(const Config& config, Inventory& inventory) {
  MoeAfterDense model;
  config.only("moe_layer_freq", 1);
  config.require_untied();
  model.layers = config.size("num_hidden_layers", max_layers);
  model.hidden = config.size("hidden_size");
  model.vocabulary = config.size("vocab_size");
  model.dense_inner = config.size("intermediate_size");
  model.moe_inner = config.size("moe_intermediate_size");
  model.experts = config.size("n_routed_experts", max_experts);
  model.shared_experts = config.size("n_shared_experts", max_small);
  model.dense_layers = config.count("first_k_dense_replace", model.layers);
  model.mtp_layers = config.count_or("num_nextn_predict_layers", 0, max_mtp_layers);
  inventory.layers = static_cast<int>(model.layers);
  inventory.experts = model.experts;
  return model;
}

namespace {

void add_moe(Patterns& patterns, const Block& block, const MoeAfterDense& model) {
  patterns.each(block, "mlp.gate.weight", {model.experts, model.hidden});
  patterns.each(block, "mlp.gate.e_score_correction_bias", {model.experts}, replicated, Dtype::f32);
  add_gated_experts(patterns, block, "mlp.experts.{e}.", model.experts, model.hidden, model.moe_inner);
  add_gated_mlp(patterns, block, "mlp.shared_experts.", model.hidden, model.moe_inner * model.shared_experts);
}

void add_mtp_ends(Patterns& patterns, const Block& block, const MoeAfterDense& model) {
  patterns.each(block, "embed_tokens.weight", {model.vocabulary, model.hidden}, vocabulary);
  patterns.each(block, "enorm.weight", {model.hidden});
  patterns.each(block, "hnorm.weight", {model.hidden});
  patterns.each(block, "eh_proj.weight", {model.hidden, 2 * model.hidden});  // a plain linear layer in vLLM
  patterns.each(block, "shared_head.norm.weight", {model.hidden});
  patterns.each(block, "shared_head.head.weight", {model.vocabulary, model.hidden}, vocabulary);
}

}  // namespace

void add_moe_after_dense(Patterns& patterns, const MoeAfterDense& model,
                         const std::function<void(const Block&)>& add_attention) {
  const std::string prefix = "model.layers.{l}.";
  const Block decoder{prefix, layer_range(0, model.layers)};
  const Block dense{prefix, layer_range(0, model.dense_layers)};
  const Block moe{prefix, layer_range(model.dense_layers, model.layers)};
  const Block mtp{prefix, layer_range(model.layers, model.layers + model.mtp_layers), Home::last_stage};

  add_ends(patterns, {.prefix = "model.", .vocabulary = model.vocabulary, .hidden = model.hidden});
  add_layer_norms(patterns, decoder, model.hidden);
  add_attention(decoder);
  add_gated_mlp(patterns, dense, "mlp.", model.hidden, model.dense_inner);
  add_moe(patterns, moe, model);
  add_layer_norms(patterns, mtp, model.hidden);
  add_attention(mtp);
  add_moe(patterns, mtp, model);
  add_mtp_ends(patterns, mtp, model);
}

}  // namespace isthmus::families
