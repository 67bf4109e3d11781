// gpt_oss: biases everywhere, one attention sink per head, experts fused per layer and stored transposed,
// [experts, in, out]. Gate and up rows alternate along the last dimension, so a contiguous cut of it gives
// every rank whole pairs: the bias [experts, 2 x inner] is cut by `rows` of one expert. The output biases are
// added once and stay whole.
#include "model/families/blocks.hpp"

namespace isthmus::families {

using enum TensorParallel;

void gpt_oss(const Config& config, Inventory& inventory) {
  config.require_untied();
  const GroupedAttention attention = [&] {
    GroupedAttention read = read_grouped_attention(config, IfMissing::refuse, IfMissing::refuse);
    read.biases = config.flag("attention_bias");
    return read;
  }();
  const std::int64_t hidden = attention.hidden;
  const std::int64_t inner = config.size("intermediate_size");
  const std::int64_t experts = config.size("num_local_experts", max_experts);
  inventory.layers = static_cast<int>(config.size("num_hidden_layers", max_layers));
  inventory.experts = experts;

  Patterns patterns(inventory);
  const Block decoder{"model.layers.{l}.", layer_range(0, inventory.layers)};
  add_ends(patterns, {.prefix = "model.", .vocabulary = config.size("vocab_size"), .hidden = hidden});
  add_layer_norms(patterns, decoder, hidden);
  add_grouped_attention(patterns, decoder, attention);
  if (attention.biases) patterns.each(decoder, "self_attn.o_proj.bias", {hidden});
  patterns.each(decoder, "self_attn.sinks", {attention.heads}, rows);
  patterns.each(decoder, "mlp.router.weight", {experts, hidden});
  patterns.each(decoder, "mlp.router.bias", {experts});
  patterns.fused_experts(decoder, "mlp.experts.gate_up_proj", {experts, hidden, 2 * inner}, rows, true);
  patterns.fused_experts(decoder, "mlp.experts.gate_up_proj_bias", {experts, 2 * inner}, rows);
  patterns.fused_experts(decoder, "mlp.experts.down_proj", {experts, inner, hidden}, columns, true);
  patterns.fused_experts(decoder, "mlp.experts.down_proj_bias", {experts, hidden}, replicated);
}

}  // namespace isthmus::families
