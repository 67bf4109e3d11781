// qwen3_moe: qwen3's attention; layers are MoE except those in mlp_only_layers and those that
// decoder_sparse_step leaves out.
#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "model/families/blocks.hpp"

namespace isthmus::families {
namespace {

std::vector<int> dense_layers(const Config& config, int layers) {
  const std::int64_t step = config.size_or("decoder_sparse_step", 1, max_layers);
  std::vector<std::int64_t> listed;
  if (config.has("mlp_only_layers")) listed = config.sizes("mlp_only_layers", 0, layers - 1);
  std::vector<int> dense;
  for (const int layer : layer_range(0, layers)) {
    const bool is_listed = std::find(listed.begin(), listed.end(), layer) != listed.end();
    if (is_listed || (layer + 1) % step != 0) dense.push_back(layer);
  }
  return dense;
}

}  // namespace

void qwen3_moe(const Config& config, Inventory& inventory) {
  config.only("attention_bias", false);
  GroupedAttention attention = read_grouped_attention(config, IfMissing::refuse, IfMissing::derive);
  attention.query_key_norms = true;
  const std::int64_t hidden = attention.hidden;
  inventory.layers = static_cast<int>(config.size("num_hidden_layers", max_layers));
  inventory.experts = config.size("num_experts", max_experts);

  const Block decoder{"model.layers.{l}.", layer_range(0, inventory.layers)};
  const Block dense{decoder.prefix, dense_layers(config, inventory.layers)};
  Block moe{decoder.prefix, {}};
  std::set_difference(decoder.layers.begin(), decoder.layers.end(), dense.layers.begin(), dense.layers.end(),
                      std::back_inserter(moe.layers));

  Patterns patterns(inventory);
  add_ends(patterns, {.prefix = "model.",
                      .vocabulary = config.size("vocab_size"),
                      .hidden = hidden,
                      .tied = config.flag_or("tie_word_embeddings", false)});
  add_layer_norms(patterns, decoder, hidden);
  add_grouped_attention(patterns, decoder, attention);
  if (!dense.layers.empty()) add_gated_mlp(patterns, dense, "mlp.", hidden, config.size("intermediate_size"));
  patterns.each(moe, "mlp.gate.weight", {inventory.experts, hidden});
  add_gated_experts(patterns, moe, "mlp.experts.{e}.", inventory.experts, hidden,
                    config.size("moe_intermediate_size"));
}

}  // namespace isthmus::families
