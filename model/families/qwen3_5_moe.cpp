// qwen3_5_moe (multimodal wrapper: Qwen3.5) and qwen3_5_moe_text (Qwen3.8): gated delta net in most layers,
// gated full attention in the others, fused experts, one shared expert. Two facts stand in no config and
// follow the two published checkpoints: the wrapper's MTP experts are stored one by one and its A_log and
// norm in F32. vLLM cuts the delta net by heads: merged rows (in_proj_qkv, conv1d: q, k, v segments) are cut
// segment by segment, so `rows` gives the right number of rows per rank, but not one contiguous range of
// them.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/families/blocks.hpp"
#include "model/families/qwen3_5_vision.hpp"

namespace isthmus::families {

using enum TensorParallel;

namespace {

struct DeltaNet {
  std::int64_t hidden = 0, key_size = 0, value_heads = 0, value_head_size = 0, kernel = 0;
};

struct SparseFfn {
  std::int64_t hidden = 0, experts = 0, inner = 0, shared_inner = 0;
};

enum class Form : std::uint8_t { wrapper, text };

DeltaNet read_delta_net(const Config& config) {
  DeltaNet net;
  net.hidden = config.size("hidden_size");
  net.key_size =
      config.size("linear_num_key_heads", max_heads) * config.size("linear_key_head_dim", max_heads);
  net.value_heads = config.size("linear_num_value_heads", max_heads);
  net.value_head_size = config.size("linear_value_head_dim", max_heads);
  net.kernel = config.size("linear_conv_kernel_dim", max_small);
  return net;
}

void add_delta_net(Patterns& patterns, const Block& block, const DeltaNet& net, Dtype small_vectors) {
  const std::int64_t values = net.value_heads * net.value_head_size;
  const std::int64_t mixed = 2 * net.key_size + values;
  patterns.each(block, "linear_attn.in_proj_qkv.weight", {mixed, net.hidden}, rows);
  patterns.each(block, "linear_attn.in_proj_z.weight", {values, net.hidden}, rows);
  patterns.each(block, "linear_attn.in_proj_b.weight", {net.value_heads, net.hidden}, rows);
  patterns.each(block, "linear_attn.in_proj_a.weight", {net.value_heads, net.hidden}, rows);
  patterns.each(block, "linear_attn.conv1d.weight", {mixed, 1, net.kernel}, rows);
  patterns.each(block, "linear_attn.A_log", {net.value_heads}, rows, small_vectors);
  patterns.each(block, "linear_attn.dt_bias", {net.value_heads}, rows);
  patterns.each(block, "linear_attn.norm.weight", {net.value_head_size}, replicated, small_vectors);
  patterns.each(block, "linear_attn.out_proj.weight", {net.hidden, values}, columns);
}

void add_fused_experts(Patterns& patterns, const Block& block, const SparseFfn& ffn) {
  patterns.fused_experts(block, "mlp.experts.gate_up_proj", {ffn.experts, 2 * ffn.inner, ffn.hidden}, rows);
  patterns.fused_experts(block, "mlp.experts.down_proj", {ffn.experts, ffn.hidden, ffn.inner}, columns);
}

void add_shared_expert(Patterns& patterns, const Block& block, const SparseFfn& ffn) {
  add_gated_mlp(patterns, block, "mlp.shared_expert.", ffn.hidden, ffn.shared_inner);
  patterns.each(block, "mlp.shared_expert_gate.weight", {1, ffn.hidden});
}

/// The layers with full attention, and the others.
struct Kinds {
  std::vector<int> full, delta;
};

Kinds read_kinds(const Config& config, int layers) {
  Kinds kinds;
  if (!config.has("layer_types")) {
    const std::int64_t interval = config.size("full_attention_interval", max_layers);
    for (const int layer : layer_range(0, layers)) {
      ((layer + 1) % interval == 0 ? kinds.full : kinds.delta).push_back(layer);
    }
    return kinds;
  }
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.size() != to_size(layers)) {
    config.refuse("layer_types", fmt::format("a list of {}", types.size()),
                  fmt::format("one entry for each of the {} layers", layers));
  }
  for (const int layer : layer_range(0, layers)) {
    const std::string& type = types[to_size(layer)];
    if (type != "full_attention" && type != "linear_attention") {
      config.refuse("layer_types", fmt::format("\"{}\"", type), "full_attention or linear_attention");
    }
    (type == "full_attention" ? kinds.full : kinds.delta).push_back(layer);
  }
  return kinds;
}

void add_mtp(Patterns& patterns, const Config& config, const GroupedAttention& attention,
             const SparseFfn& ffn, Form form) {
  const std::int64_t depth = config.count_or("mtp_num_hidden_layers", 0, max_mtp_layers);
  if (depth == 0) return;
  const Block block{"mtp.layers.{l}.", layer_range(0, depth), Home::last_stage};
  add_layer_norms(patterns, block, ffn.hidden);
  add_grouped_attention(patterns, block, attention);
  patterns.each(block, "mlp.gate.weight", {ffn.experts, ffn.hidden});
  if (form == Form::wrapper) {
    add_gated_experts(patterns, block, "mlp.experts.{e}.", ffn.experts, ffn.hidden, ffn.inner);
  } else {
    add_fused_experts(patterns, block, ffn);
  }
  add_shared_expert(patterns, block, ffn);
  patterns.once(Home::last_stage, "mtp.fc.weight", {ffn.hidden, 2 * ffn.hidden}, rows);
  for (const char* norm : {"norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"}) {
    patterns.once(Home::last_stage, fmt::format("mtp.{}.weight", norm), {ffn.hidden});
  }
}

void add_language_model(const Config& config, Inventory& inventory, const std::string& prefix, Form form) {
  config.only("attention_bias", false);
  config.only("mlp_only_layers", nlohmann::json::array());
  config.only("decoder_sparse_step", 1);
  GroupedAttention attention = read_grouped_attention(config, IfMissing::refuse, IfMissing::refuse);
  attention.query_key_norms = true;
  attention.query_scale = config.flag_or("attn_output_gate", true) ? 2 : 1;
  inventory.layers = static_cast<int>(config.size("num_hidden_layers", max_layers));
  inventory.experts = config.size("num_experts", max_experts);
  const SparseFfn ffn{attention.hidden, inventory.experts, config.size("moe_intermediate_size"),
                      config.size("shared_expert_intermediate_size")};
  const Kinds kinds = read_kinds(config, inventory.layers);
  const Block decoder{prefix + "layers.{l}.", layer_range(0, inventory.layers)};

  Patterns patterns(inventory);
  add_ends(patterns, {.prefix = prefix, .vocabulary = config.size("vocab_size"), .hidden = ffn.hidden});
  add_layer_norms(patterns, decoder, ffn.hidden);
  add_delta_net(patterns, {decoder.prefix, kinds.delta}, read_delta_net(config),
                form == Form::wrapper ? Dtype::f32 : Dtype::bf16);
  add_grouped_attention(patterns, {decoder.prefix, kinds.full}, attention);
  patterns.each(decoder, "mlp.gate.weight", {ffn.experts, ffn.hidden});
  add_fused_experts(patterns, decoder, ffn);
  add_shared_expert(patterns, decoder, ffn);
  add_mtp(patterns, config, attention, ffn, form);
}

}  // namespace

void qwen3_5_moe_text(const Config& config, Inventory& inventory) {
  config.require_untied();
  add_language_model(config, inventory, "model.", Form::text);
}

void qwen3_5_moe(const Config& config, Inventory& inventory) {
  const Config text = config.object("text_config");
  text.only("model_type", "qwen3_5_moe_text");
  text.require_untied(&config);
  add_language_model(text, inventory, "model.language_model.", Form::wrapper);
  add_qwen3_5_vision(config.object("vision_config"), inventory);
}

}  // namespace isthmus::families
