#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing::nemotron_h_test {
namespace {

using enum TensorParallel;

struct Sizes {
  std::int64_t hidden = Draw::size(1, 20), words = Draw::size(1, 50), inner = Draw::size(1, 30);
  std::int64_t expert_inner = Draw::size(1, 30), experts = Draw::size(), shared_inner = Draw::size(1, 30);
  std::int64_t shared = Draw::size(1, 3), latent = Draw::size(1, 10), groups = Draw::size(),
               keys = Draw::size();
  std::int64_t head = Draw::size(), mamba_heads = Draw::size(), mamba_head = Draw::size(),
               state_groups = Draw::size();
  std::int64_t states = Draw::size(), kernel = Draw::size();
  bool conv_bias = Draw::flag(), has_latent = Draw::flag();
};

nlohmann::json config_of(const Sizes& s) {
  nlohmann::json config = {{"model_type", "nemotron_h"},
                           {"hidden_size", s.hidden},
                           {"vocab_size", s.words},
                           {"intermediate_size", s.inner},
                           {"moe_intermediate_size", s.expert_inner},
                           {"n_routed_experts", s.experts},
                           {"n_shared_experts", s.shared},
                           {"moe_shared_expert_intermediate_size", s.shared_inner},
                           {"num_attention_heads", s.groups * s.keys},
                           {"num_key_value_heads", s.keys},
                           {"head_dim", s.head},
                           {"mamba_num_heads", s.mamba_heads},
                           {"mamba_head_dim", s.mamba_head},
                           {"n_groups", s.state_groups},
                           {"ssm_state_size", s.states},
                           {"conv_kernel", s.kernel},
                           {"use_conv_bias", s.conv_bias},
                           {"tie_word_embeddings", false},
                           {"mlp_hidden_act", "relu2"}};
  if (s.has_latent) config["moe_latent_size"] = s.latent;
  return config;
}

// As long as `length`, written as the text or as the list.
std::string draw_pattern(nlohmann::json& config, const std::string& text_key, const std::string& list_key,
                         std::int64_t length) {
  const std::vector<std::pair<char, std::string>> kinds{
      {'M', "mamba"}, {'E', "moe"}, {'*', "attention"}, {'-', "mlp"}};
  std::string letters;
  const bool as_text = Draw::flag();
  for (std::int64_t l = 0; l < length; ++l) {
    const auto& [letter, word] = kinds[static_cast<std::size_t>(Draw::size(0, 3))];
    letters += letter;
    if (!as_text) config[list_key].push_back(word);
  }
  if (as_text) config[text_key] = letters;
  return letters;
}

void add_mamba(ModelCase& model, const std::string& mixer, const Sizes& s) {
  const std::int64_t inner = s.mamba_heads * s.mamba_head;
  const std::int64_t mixed = inner + 2 * s.state_groups * s.states;
  model.add(mixer + "in_proj.weight", {inner + mixed + s.mamba_heads, s.hidden}, rows);
  model.add(mixer + "conv1d.weight", {mixed, 1, s.kernel}, rows);
  if (s.conv_bias) model.add(mixer + "conv1d.bias", {mixed}, rows);
  model.add(mixer + "A_log", {s.mamba_heads}, rows);
  model.add(mixer + "D", {s.mamba_heads}, rows);
  model.add(mixer + "dt_bias", {s.mamba_heads}, rows);
  model.add(mixer + "norm.weight", {inner}, rows);
  model.add(mixer + "out_proj.weight", {s.hidden, inner}, columns);
}

void add_moe(ModelCase& model, const std::string& mixer, const Sizes& s) {
  const std::int64_t width = s.has_latent ? s.latent : s.hidden;
  model.add(mixer + "gate.weight", {s.experts, s.hidden});
  model.add(mixer + "gate.e_score_correction_bias", {s.experts}, replicated, Dtype::f32);
  if (s.has_latent) model.add(mixer + "fc1_latent_proj.weight", {s.latent, s.hidden});
  if (s.has_latent) model.add(mixer + "fc2_latent_proj.weight", {s.hidden, s.latent});
  for (std::int64_t e = 0; e < s.experts; ++e) {
    model.add(mixer + "experts." + std::to_string(e) + ".up_proj.weight", {s.expert_inner, width}, rows);
    model.add(mixer + "experts." + std::to_string(e) + ".down_proj.weight", {width, s.expert_inner}, columns);
  }
  model.add(mixer + "shared_experts.up_proj.weight", {s.shared_inner * s.shared, s.hidden}, rows);
  model.add(mixer + "shared_experts.down_proj.weight", {s.hidden, s.shared_inner * s.shared}, columns);
}

void add_block(ModelCase& model, const std::string& layer, const Sizes& s, char kind) {
  const std::string mixer = layer + "mixer.";
  model.add(layer + "norm.weight", {s.hidden});
  if (kind == 'M') add_mamba(model, mixer, s);
  if (kind == 'E') add_moe(model, mixer, s);
  if (kind == '*') {
    const std::int64_t queries = s.groups * s.keys * s.head;
    add_attention(model, mixer, s.hidden, queries, s.keys * s.head, queries);
  }
  if (kind != '-') return;
  model.add(mixer + "up_proj.weight", {s.inner, s.hidden}, rows);
  model.add(mixer + "down_proj.weight", {s.hidden, s.inner}, columns);
}

void add_mtp(ModelCase& model, const Sizes& s) {
  const std::int64_t depths = Draw::size(0, 2);
  const std::string pattern =
      draw_pattern(model.config, "mtp_hybrid_override_pattern", "mtp_layers_block_type", Draw::size(1, 3));
  if (depths > 0) model.config["num_nextn_predict_layers"] = depths;
  std::size_t index = 0;
  for (std::int64_t d = 0; d < depths; ++d) {
    for (std::size_t i = 0; i < pattern.size(); ++i, ++index) {
      const std::string layer = "mtp.layers." + std::to_string(index) + ".";
      add_block(model, layer, s, pattern[i]);
      if (i == 0) {
        model.add(layer + "eh_proj.weight", {s.hidden, 2 * s.hidden});
        model.add(layer + "enorm.weight", {s.hidden});
        model.add(layer + "hnorm.weight", {s.hidden});
      }
      if (i + 1 == pattern.size()) model.add(layer + "final_layernorm.weight", {s.hidden});
    }
  }
}

ModelCase nemotron_case() {
  const Sizes sizes;
  ModelCase model;
  model.config = config_of(sizes);
  const std::string pattern =
      draw_pattern(model.config, "hybrid_override_pattern", "layers_block_type", Draw::size(1, 8));
  model.layers = static_cast<int>(pattern.size());
  if (Draw::flag()) model.config["num_hidden_layers"] = pattern.size();
  model.add("backbone.embeddings.weight", {sizes.words, sizes.hidden}, vocabulary);
  for (std::size_t l = 0; l < pattern.size(); ++l) {
    add_block(model, "backbone.layers." + std::to_string(l) + ".", sizes, pattern[l]);
  }
  model.add("backbone.norm_f.weight", {sizes.hidden});
  model.add("lm_head.weight", {sizes.words, sizes.hidden}, vocabulary);
  if (Draw::flag()) add_mtp(model, sizes);
  return model;
}

TEST(NemotronH, inventory_is_that_of_a_plain_loop) { expect_family("nemotron_h", nemotron_case); }

TEST(NemotronH, refuses_patterns_that_are_none) {
  nlohmann::json config = {{"model_type", "nemotron_h"},
                           {"hidden_size", 8},
                           {"vocab_size", 10},
                           {"intermediate_size", 12},
                           {"tie_word_embeddings", false}};
  const auto refused = [&](const std::string& key, const nlohmann::json& value, const std::string& found) {
    nlohmann::json changed = config;
    changed["hybrid_override_pattern"] = "--";
    changed[key] = value;
    EXPECT_NE(refusal(changed).find(key + ": found " + found), std::string::npos) << refusal(changed);
  };
  EXPECT_NE(refusal(config).find("hybrid_override_pattern: found nothing"), std::string::npos)
      << refusal(config);
  refused("hybrid_override_pattern", "-X", "'X'");
  refused("hybrid_override_pattern", "", "nothing");
  refused("layers_block_type", {"mlp", "moe"}, "other blocks");
  refused("layers_block_type", {"mlp", "lstm"}, "\"lstm\"");
  refused("num_hidden_layers", 3, "3");
  refused("mlp_hidden_act", "silu", "\"silu\"");
  refused("hybrid_override_pattern", std::string(20'000, '-'), "20000 blocks");
}

TEST(NemotronH, asks_only_for_the_keys_of_its_kinds_of_blocks) {
  const nlohmann::json config = {{"model_type", "nemotron_h"},
                                 {"hidden_size", 8},
                                 {"vocab_size", 10},
                                 {"intermediate_size", 12},
                                 {"tie_word_embeddings", false},
                                 {"hybrid_override_pattern", "--"}};
  EXPECT_EQ(read_config(config).experts, 0);
}

}  // namespace
}  // namespace isthmus::testing::nemotron_h_test
