#include "model/families/qwen3_5_vision.hpp"

#include <nlohmann/json.hpp>

namespace isthmus::families {
namespace {

// A linear layer or layer norm: weight and bias.
void add_biased(Patterns& patterns, const Block& block, const std::string& name, Shape weight) {
  const std::int64_t outputs = weight.front();
  patterns.each(block, name + ".weight", std::move(weight));
  patterns.each(block, name + ".bias", {outputs});
}

void add_biased_once(Patterns& patterns, const std::string& name, Shape weight) {
  const std::int64_t outputs = weight.front();
  patterns.once(Home::first_stage, name + ".weight", std::move(weight));
  patterns.once(Home::first_stage, name + ".bias", {outputs});
}

}  // namespace

void add_qwen3_5_vision(const Config& config, Inventory& inventory) {
  config.only("deepstack_visual_indexes", nlohmann::json::array());  // others would add mergers
  const std::int64_t width = config.size("hidden_size");
  const std::int64_t inner = config.size("intermediate_size");
  const std::int64_t patch = config.size("patch_size", max_small);
  const std::int64_t merge = config.size("spatial_merge_size", max_small);
  const std::int64_t merged = width * merge * merge;

  Patterns patterns(inventory);
  add_biased_once(patterns, "model.visual.patch_embed.proj",
                  {width, config.size("in_channels", max_small),
                   config.size("temporal_patch_size", max_small), patch, patch});
  patterns.once(Home::first_stage, "model.visual.pos_embed.weight",
                {config.size("num_position_embeddings"), width});
  const Block block{"model.visual.blocks.{l}.", layer_range(0, config.size("depth", max_layers)),
                    Home::first_stage};
  add_biased(patterns, block, "norm1", {width});
  add_biased(patterns, block, "norm2", {width});
  add_biased(patterns, block, "attn.qkv", {3 * width, width});
  add_biased(patterns, block, "attn.proj", {width, width});
  add_biased(patterns, block, "mlp.linear_fc1", {inner, width});
  add_biased(patterns, block, "mlp.linear_fc2", {width, inner});
  add_biased_once(patterns, "model.visual.merger.norm", {width});
  add_biased_once(patterns, "model.visual.merger.linear_fc1", {merged, merged});
  add_biased_once(patterns, "model.visual.merger.linear_fc2", {config.size("out_hidden_size"), merged});
}

}  // namespace isthmus::families
