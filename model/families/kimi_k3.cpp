// kimi_k3: Kimi delta attention in most layers, gated latent attention in the others, MoE in a latent space,
// attention residuals. Routed experts are named w1 (gate), w3 (up), w2 (down), so the published name rule
// leaves them in misc. Splits: heads by rows as elsewhere. A_log is stored padded to 128 heads, which no even
// cut of the real ones follows, and the low-rank inputs, latent projections and residuals are small or
// shared: on every rank.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/families/blocks.hpp"

namespace isthmus::families {

using enum TensorParallel;

namespace {

constexpr std::int64_t stored_heads = 128;  // length of A_log as stored
constexpr std::string_view prefix = "language_model.model.";

/// Layers with delta attention; the config counts from 1 and lists the others too.
std::vector<int> read_delta_layers(const Config& linear, std::int64_t layers) {
  std::vector<std::int64_t> listed = linear.sizes("kda_layers", 1, layers);
  std::vector<std::int64_t> all = listed;
  for (const std::int64_t layer : linear.sizes("full_attn_layers", 1, layers)) all.push_back(layer);
  std::sort(all.begin(), all.end());
  const bool repeated = std::adjacent_find(all.begin(), all.end()) != all.end();
  if (repeated || static_cast<std::int64_t>(all.size()) != layers) {
    linear.refuse("kda_layers",
                  fmt::format("{} layers here and in full_attn_layers{}", all.size(),
                              repeated ? ", some of them twice" : ""),
                  fmt::format("each of 1 to {} in one of the two lists", layers));
  }
  std::sort(listed.begin(), listed.end());
  std::vector<int> delta;
  delta.reserve(listed.size());
  for (const std::int64_t layer : listed) delta.push_back(static_cast<int>(layer - 1));
  return delta;
}

void add_delta_attention(Patterns& patterns, const Block& block, const Config& linear, std::int64_t hidden) {
  linear.only("use_full_rank_gate", true);
  const std::int64_t heads = linear.size("num_heads", stored_heads);
  const std::int64_t head_size = linear.size("head_dim", max_heads);
  const std::int64_t inner = heads * head_size;
  const std::int64_t kernel = linear.size("short_conv_kernel_size", max_small);
  for (const char* which : {"q", "k", "v"}) {
    patterns.each(block, fmt::format("self_attn.{}_proj.weight", which), {inner, hidden}, rows);
    patterns.each(block, fmt::format("self_attn.{}_conv1d.weight", which), {inner, 1, kernel}, rows,
                  Dtype::f32);
  }
  patterns.each(block, "self_attn.A_log", {stored_heads}, replicated, Dtype::f32);
  patterns.each(block, "self_attn.dt_bias", {inner}, rows, Dtype::f32);
  patterns.each(block, "self_attn.f_a_proj.weight", {head_size, hidden});
  patterns.each(block, "self_attn.f_b_proj.weight", {inner, head_size}, rows);
  patterns.each(block, "self_attn.b_proj.weight", {heads, hidden}, rows);
  patterns.each(block, "self_attn.g_proj.weight", {inner, hidden}, rows);
  patterns.each(block, "self_attn.o_norm.weight", {head_size}, replicated, Dtype::f32);
  patterns.each(block, "self_attn.o_proj.weight", {hidden, inner}, columns);
}

void add_full_attention(Patterns& patterns, const Block& block, const Config& text) {
  const LatentAttention attention = read_latent_attention(text);
  add_latent_attention(patterns, block, attention);
  if (text.flag("mla_use_output_gate")) {
    patterns.each(block, "self_attn.g_proj.weight",
                  {attention.heads * attention.value_size, attention.hidden}, rows);
  }
}

void add_residuals(Patterns& patterns, const Block& decoder, std::int64_t hidden) {
  for (const char* where : {"self_attention", "mlp"}) {
    patterns.each(decoder, fmt::format("{}_res_norm.weight", where), {hidden});
    patterns.each(decoder, fmt::format("{}_res_proj.weight", where), {1, hidden});
  }
  patterns.once(Home::last_stage, std::string(prefix) + "output_attn_res_norm.weight", {hidden});
  patterns.once(Home::last_stage, std::string(prefix) + "output_attn_res_proj.weight", {1, hidden});
}

void add_moe(Patterns& patterns, const Block& block, const Config& text, std::int64_t experts,
             std::int64_t hidden) {
  const std::int64_t inner = text.size("moe_intermediate_size");
  const std::int64_t latent = text.size("routed_expert_hidden_size");
  const std::string moe = "block_sparse_moe.";
  patterns.each(block, moe + "gate.weight", {experts, hidden});
  patterns.each(block, moe + "gate.e_score_correction_bias", {experts}, replicated, Dtype::f32);
  patterns.experts(block, moe + "experts.{e}.w1.weight", experts, {inner, latent}, rows);
  patterns.experts(block, moe + "experts.{e}.w3.weight", experts, {inner, latent}, rows);
  patterns.experts(block, moe + "experts.{e}.w2.weight", experts, {latent, inner}, columns);
  add_gated_mlp(patterns, block, moe + "shared_experts.", hidden,
                inner * text.size("num_shared_experts", max_small));
  patterns.each(block, moe + "routed_expert_down_proj.weight", {latent, hidden});
  patterns.each(block, moe + "routed_expert_up_proj.weight", {hidden, latent});
  if (text.flag("latent_moe_use_norm")) patterns.each(block, moe + "routed_expert_norm.weight", {latent});
}

void add_vision(Patterns& patterns, const Config& vision) {
  for (const char* key : {"attn_bias", "linear_bias", "patch_embed_proj_bias"}) vision.only(key, false);
  const std::int64_t width = vision.size("vt_hidden_size");
  const std::int64_t inner = vision.size("vt_intermediate_size");
  const std::int64_t attention = vision.size("qkv_hidden_size");
  const std::int64_t patch = vision.size("patch_size", max_small);
  const std::int64_t text_width = vision.size("text_hidden_size");
  const std::vector<std::int64_t> merge = vision.sizes("merge_kernel_size", 1, max_small);
  if (merge.size() != 2) {
    vision.refuse("merge_kernel_size", fmt::format("a list of {}", merge.size()),
                  "a list of height and width");
  }
  const std::int64_t merged = vision.size("mm_hidden_size") * merge[0] * merge[1];

  const auto once = [&](const std::string& name, Shape shape) {
    patterns.once(Home::first_stage, name, std::move(shape));
  };
  once("vision_tower.patch_embed.proj.weight", {width, 3, patch, patch});
  once("vision_tower.patch_embed.pos_emb.weight",
       {vision.size("init_pos_emb_height"), vision.size("init_pos_emb_width"), width});
  const Block block{"vision_tower.encoder.blocks.{l}.",
                    layer_range(0, vision.size("vt_num_hidden_layers", max_layers)), Home::first_stage};
  patterns.each(block, "norm0.weight", {width});
  patterns.each(block, "norm1.weight", {width});
  patterns.each(block, "wqkv.weight", {3 * attention, width});
  patterns.each(block, "wo.weight", {width, attention});
  patterns.each(block, "mlp.fc0.weight", {inner, width});
  patterns.each(block, "mlp.fc1.weight", {width, inner});
  once("vision_tower.encoder.final_layernorm.weight", {width});
  once("mm_projector.proj.0.weight", {merged, merged});
  once("mm_projector.proj.2.weight", {text_width, merged});
  once("mm_projector.post_norm.weight", {text_width});
}

}  // namespace

void kimi_k3(const Config& config, Inventory& inventory) {
  const Config text = config.object("text_config");
  const Config linear = text.object("linear_attn_config");
  text.require_untied(&config);
  text.only("model_type", "kimi_linear");
  text.only("moe_layer_freq", 1);
  text.only("num_nextn_predict_layers", 0);
  const std::int64_t hidden = text.size("hidden_size");
  const std::int64_t layers = text.size("num_hidden_layers", max_layers);
  const std::int64_t dense = text.count("first_k_dense_replace", layers);
  inventory.layers = static_cast<int>(layers);
  inventory.experts = text.size("num_experts", max_experts);

  const std::string layer_prefix = std::string(prefix) + "layers.{l}.";
  const Block decoder{layer_prefix, layer_range(0, layers)};
  const Block delta{layer_prefix, read_delta_layers(linear, layers)};
  Block full{layer_prefix, {}};
  std::set_difference(decoder.layers.begin(), decoder.layers.end(), delta.layers.begin(), delta.layers.end(),
                      std::back_inserter(full.layers));

  Patterns patterns(inventory);
  add_ends(patterns,
           {std::string(prefix), "language_model.lm_head.weight", text.size("vocab_size"), hidden, false});
  add_layer_norms(patterns, decoder, hidden);
  add_delta_attention(patterns, delta, linear, hidden);
  add_full_attention(patterns, full, text);
  add_residuals(patterns, decoder, hidden);
  add_gated_mlp(patterns, {layer_prefix, layer_range(0, dense)}, "mlp.", hidden,
                text.size("intermediate_size"));
  add_moe(patterns, {layer_prefix, layer_range(dense, layers)}, text, inventory.experts, hidden);
  add_vision(patterns, config.object("vision_config"));
}

}  // namespace isthmus::families
