#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing::qwen3_5_moe_test {
namespace {

using enum TensorParallel;

struct Sizes {
  std::int64_t layers = Draw::size(), depth = Draw::size(0, 2), hidden = Draw::size(1, 20),
               words = Draw::size(1, 50);
  std::int64_t inner = Draw::size(1, 30), shared = Draw::size(1, 30), experts = Draw::size();
  std::int64_t groups = Draw::size(), keys = Draw::size(), head = Draw::size(), interval = Draw::size(1, 3);
  std::int64_t linear_keys = Draw::size(), linear_key = Draw::size(), linear_values = Draw::size();
  std::int64_t linear_value = Draw::size(), kernel = Draw::size();
  bool gate = Draw::flag(), listed = Draw::flag();

  bool full(std::int64_t layer) const { return (layer + 1) % interval == 0; }
};

nlohmann::json text_config(const Sizes& s) {
  nlohmann::json config = {{"hidden_size", s.hidden},
                           {"num_hidden_layers", s.layers},
                           {"vocab_size", s.words},
                           {"moe_intermediate_size", s.inner},
                           {"shared_expert_intermediate_size", s.shared},
                           {"num_experts", s.experts},
                           {"num_attention_heads", s.groups * s.keys},
                           {"num_key_value_heads", s.keys},
                           {"head_dim", s.head},
                           {"attn_output_gate", s.gate},
                           {"linear_num_key_heads", s.linear_keys},
                           {"linear_key_head_dim", s.linear_key},
                           {"linear_num_value_heads", s.linear_values},
                           {"linear_value_head_dim", s.linear_value},
                           {"linear_conv_kernel_dim", s.kernel},
                           {"mtp_num_hidden_layers", s.depth}};
  if (!s.listed) {
    config["full_attention_interval"] = s.interval;
    return config;
  }
  for (std::int64_t l = 0; l < s.layers; ++l) {
    config["layer_types"].push_back(s.full(l) ? "full_attention" : "linear_attention");
  }
  return config;
}

void add_full_attention(ModelCase& model, const std::string& layer, const Sizes& s) {
  const std::int64_t inner = s.groups * s.keys * s.head;
  add_attention(model, layer + "self_attn.", s.hidden, s.gate ? 2 * inner : inner, s.keys * s.head, inner);
  model.add(layer + "self_attn.q_norm.weight", {s.head});
  model.add(layer + "self_attn.k_norm.weight", {s.head});
}

void add_delta_net(ModelCase& model, const std::string& layer, const Sizes& s, Dtype small) {
  const std::string name = layer + "linear_attn.";
  const std::int64_t values = s.linear_values * s.linear_value;
  const std::int64_t mixed = s.linear_keys * s.linear_key * 2 + values;
  model.add(name + "in_proj_qkv.weight", {mixed, s.hidden}, rows);
  model.add(name + "in_proj_z.weight", {values, s.hidden}, rows);
  model.add(name + "in_proj_b.weight", {s.linear_values, s.hidden}, rows);
  model.add(name + "in_proj_a.weight", {s.linear_values, s.hidden}, rows);
  model.add(name + "conv1d.weight", {mixed, 1, s.kernel}, rows);
  model.add(name + "A_log", {s.linear_values}, rows, small);
  model.add(name + "dt_bias", {s.linear_values}, rows);
  model.add(name + "norm.weight", {s.linear_value}, replicated, small);
  model.add(name + "out_proj.weight", {s.hidden, values}, columns);
}

void add_layer(ModelCase& model, const std::string& layer, const Sizes& s, bool full, bool fused,
               Dtype small) {
  model.add(layer + "input_layernorm.weight", {s.hidden});
  model.add(layer + "post_attention_layernorm.weight", {s.hidden});
  if (full) add_full_attention(model, layer, s);
  if (!full) add_delta_net(model, layer, s, small);
  model.add(layer + "mlp.gate.weight", {s.experts, s.hidden});
  if (fused) {
    model.add(layer + "mlp.experts.gate_up_proj", {s.experts, 2 * s.inner, s.hidden}, rows);
    model.add(layer + "mlp.experts.down_proj", {s.experts, s.hidden, s.inner}, columns);
  }
  for (std::int64_t e = 0; e < (fused ? 0 : s.experts); ++e) {
    add_mlp(model, layer + "mlp.experts." + std::to_string(e) + ".", s.hidden, s.inner);
  }
  add_mlp(model, layer + "mlp.shared_expert.", s.hidden, s.shared);
  model.add(layer + "mlp.shared_expert_gate.weight", {1, s.hidden});
}

void add_language_model(ModelCase& model, const Sizes& s, const std::string& prefix, bool wrapper) {
  model.layers = static_cast<int>(s.layers);
  model.add(prefix + "embed_tokens.weight", {s.words, s.hidden}, vocabulary);
  model.add(prefix + "norm.weight", {s.hidden});
  model.add("lm_head.weight", {s.words, s.hidden}, vocabulary);
  for (std::int64_t l = 0; l < s.layers; ++l) {
    const std::string layer = prefix + "layers." + std::to_string(l) + ".";
    add_layer(model, layer, s, s.full(l), true, wrapper ? Dtype::f32 : Dtype::bf16);
  }
  for (std::int64_t l = 0; l < s.depth; ++l) {
    add_layer(model, "mtp.layers." + std::to_string(l) + ".", s, true, !wrapper, Dtype::bf16);
  }
  if (s.depth == 0) return;
  model.add("mtp.fc.weight", {s.hidden, 2 * s.hidden}, rows);
  model.add("mtp.norm.weight", {s.hidden});
  model.add("mtp.pre_fc_norm_embedding.weight", {s.hidden});
  model.add("mtp.pre_fc_norm_hidden.weight", {s.hidden});
}

void add_vision(ModelCase& model) {
  const std::int64_t width = Draw::size(), inner = Draw::size(), depth = Draw::size(),
                     channels = Draw::size();
  const std::int64_t frames = Draw::size(), patch = Draw::size(), places = Draw::size(), out = Draw::size();
  const std::int64_t merge = Draw::size(), merged = width * merge * merge;
  model.config["vision_config"] = {{"hidden_size", width},
                                   {"intermediate_size", inner},
                                   {"depth", depth},
                                   {"in_channels", channels},
                                   {"temporal_patch_size", frames},
                                   {"patch_size", patch},
                                   {"num_position_embeddings", places},
                                   {"out_hidden_size", out},
                                   {"spatial_merge_size", merge},
                                   {"deepstack_visual_indexes", nlohmann::json::array()}};
  const auto with_bias = [&model](const std::string& name, std::vector<std::int64_t> shape) {
    model.add(name + ".bias", {shape[0]});
    model.add(name + ".weight", std::move(shape));
  };
  with_bias("model.visual.patch_embed.proj", {width, channels, frames, patch, patch});
  model.add("model.visual.pos_embed.weight", {places, width});
  for (std::int64_t l = 0; l < depth; ++l) {
    const std::string block = "model.visual.blocks." + std::to_string(l) + ".";
    with_bias(block + "norm1", {width});
    with_bias(block + "norm2", {width});
    with_bias(block + "attn.qkv", {3 * width, width});
    with_bias(block + "attn.proj", {width, width});
    with_bias(block + "mlp.linear_fc1", {inner, width});
    with_bias(block + "mlp.linear_fc2", {width, inner});
  }
  with_bias("model.visual.merger.norm", {width});
  with_bias("model.visual.merger.linear_fc1", {merged, merged});
  with_bias("model.visual.merger.linear_fc2", {out, merged});
}

ModelCase text_case() {
  const Sizes sizes;
  ModelCase model;
  model.config = text_config(sizes);
  model.config["model_type"] = "qwen3_5_moe_text";
  model.config["tie_word_embeddings"] = false;
  add_language_model(model, sizes, "model.", false);
  return model;
}

ModelCase wrapper_case() {
  const Sizes sizes;
  ModelCase model;
  model.config = {{"model_type", "qwen3_5_moe"}, {"text_config", text_config(sizes)}};
  (Draw::flag() ? model.config : model.config["text_config"])["tie_word_embeddings"] = false;
  add_language_model(model, sizes, "model.language_model.", true);
  add_vision(model);
  return model;
}

TEST(Qwen35Moe, text_inventory_is_that_of_a_plain_loop) { expect_family("qwen3_5_moe_text", text_case); }
TEST(Qwen35Moe, multimodal_inventory_is_that_of_a_plain_loop) { expect_family("qwen3_5_moe", wrapper_case); }

}  // namespace
}  // namespace isthmus::testing::qwen3_5_moe_test
