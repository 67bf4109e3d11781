// nemotron_h: every layer is one block, Mamba-2, attention, MoE or dense FFN. No gate projection (relu2), so
// an expert has two matrices; with moe_latent_size the routed experts work between two projections that every
// rank holds. vLLM cuts Mamba by heads and groups: in_proj, conv1d, A_log, D, dt_bias and norm by `rows`,
// out_proj by `columns`. in_proj and conv1d merge several segments that are cut one by one: `rows` gives the
// right number of rows per rank, but not one contiguous range of them.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/families/blocks.hpp"

namespace isthmus::families {

using enum TensorParallel;

namespace {

enum class Kind : std::uint8_t { mamba, moe, attention, dense };
using Kinds = std::vector<Kind>;

// The same in two notations: "MEM*-", or ["mamba", "moe", "mamba", "attention", "mlp"].
Kinds read_kinds(const Config& config, const std::string& text_key, const std::string& list_key) {
  constexpr std::string_view letters = "ME*-";
  const std::vector<std::string> words{"mamba", "moe", "attention", "mlp"};
  Kinds from_text, from_list;
  if (config.has(text_key)) {
    for (const char letter : config.text(text_key)) {
      const std::size_t kind = letters.find(letter);
      if (kind == letters.npos) config.refuse(text_key, fmt::format("'{}'", letter), "M, E, * and -");
      from_text.push_back(static_cast<Kind>(kind));
    }
  }
  if (config.has(list_key)) {
    for (const std::string& word : config.texts(list_key)) {
      const auto kind = std::find(words.begin(), words.end(), word);
      if (kind == words.end()) config.refuse(list_key, '"' + word + '"', "mamba, moe, attention and mlp");
      from_list.push_back(static_cast<Kind>(kind - words.begin()));
    }
  }
  if (config.has(text_key) && config.has(list_key) && from_text != from_list) {
    config.refuse(list_key, "other blocks than in " + text_key, "the same blocks, or one of the two keys");
  }
  Kinds kinds = from_text.empty() ? from_list : from_text;
  if (kinds.size() > to_size(max_layers)) {
    config.refuse(config.has(text_key) ? text_key : list_key, fmt::format("{} blocks", kinds.size()),
                  fmt::format("1 to {} blocks", max_layers));
  }
  return kinds;
}

/// Adds blocks of each kind. The keys of a kind are read only if the model has blocks of it.
class Blocks {
 public:
  Blocks(const Config& config, Patterns& patterns, std::int64_t hidden)
      : config_(config), patterns_(patterns), hidden_(hidden) {}

  void add(const std::string& prefix, Home home, const Kinds& kinds, std::int64_t repeats) {
    std::map<Kind, Block> blocks;
    for (std::size_t layer = 0; layer < kinds.size() * to_size(repeats); ++layer) {
      Block& block = blocks.try_emplace(kinds[layer % kinds.size()], Block{prefix, {}, home}).first->second;
      block.layers.push_back(static_cast<int>(layer));
    }
    const auto total = static_cast<std::int64_t>(kinds.size()) * repeats;
    patterns_.each({prefix, layer_range(0, total), home}, "norm.weight", {hidden_});
    for (const auto& [kind, block] : blocks) {
      if (kind == Kind::mamba) add_mamba(block);
      if (kind == Kind::moe) add_moe(block);
      if (kind == Kind::attention) add_attention(block);
      if (kind == Kind::dense) add_up_down(block, "mixer.", config_.size("intermediate_size"));
    }
  }

 private:
  void add_mamba(const Block& block) {
    const std::int64_t heads = config_.size("mamba_num_heads", max_heads);
    const std::int64_t inner = heads * config_.size("mamba_head_dim", max_heads);
    const std::int64_t states =
        config_.size("n_groups", max_heads) * config_.size("ssm_state_size", max_heads);
    const std::int64_t mixed = inner + 2 * states;
    patterns_.each(block, "mixer.in_proj.weight", {inner + mixed + heads, hidden_}, rows);
    patterns_.each(block, "mixer.conv1d.weight", {mixed, 1, config_.size("conv_kernel", max_small)}, rows);
    if (config_.flag("use_conv_bias")) patterns_.each(block, "mixer.conv1d.bias", {mixed}, rows);
    patterns_.each(block, "mixer.A_log", {heads}, rows);
    patterns_.each(block, "mixer.D", {heads}, rows);
    patterns_.each(block, "mixer.dt_bias", {heads}, rows);
    patterns_.each(block, "mixer.norm.weight", {inner}, rows);
    patterns_.each(block, "mixer.out_proj.weight", {hidden_, inner}, columns);
  }

  void add_attention(const Block& block) {
    const GroupedAttention attention = read_grouped_attention(config_, IfMissing::refuse, IfMissing::refuse);
    add_grouped_attention(patterns_, block, attention, "mixer.");
  }

  void add_moe(const Block& block) {
    const std::int64_t experts = config_.size("n_routed_experts", max_experts);
    const std::int64_t inner = config_.size("moe_intermediate_size");
    const std::int64_t latent = config_.size_or("moe_latent_size", hidden_);
    const std::int64_t shared =
        config_.size("moe_shared_expert_intermediate_size") * config_.size("n_shared_experts", max_small);
    patterns_.each(block, "mixer.gate.weight", {experts, hidden_});
    patterns_.each(block, "mixer.gate.e_score_correction_bias", {experts}, replicated, Dtype::f32);
    if (config_.has("moe_latent_size")) {
      patterns_.each(block, "mixer.fc1_latent_proj.weight", {latent, hidden_});
      patterns_.each(block, "mixer.fc2_latent_proj.weight", {hidden_, latent});
    }
    patterns_.experts(block, "mixer.experts.{e}.up_proj.weight", experts, {inner, latent}, rows);
    patterns_.experts(block, "mixer.experts.{e}.down_proj.weight", experts, {latent, inner}, columns);
    add_up_down(block, "mixer.shared_experts.", shared);
  }

  void add_up_down(const Block& block, const std::string& name, std::int64_t inner) {
    patterns_.each(block, name + "up_proj.weight", {inner, hidden_}, rows);
    patterns_.each(block, name + "down_proj.weight", {hidden_, inner}, columns);
  }

  const Config& config_;
  Patterns& patterns_;
  std::int64_t hidden_;
};

void add_mtp(const Config& config, Patterns& patterns, Blocks& blocks, std::int64_t hidden) {
  const Kinds kinds = read_kinds(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  const std::int64_t depths = config.count_or("num_nextn_predict_layers", 0, max_mtp_layers);
  if (kinds.empty() || depths == 0) return;
  const std::string prefix = "mtp.layers.{l}.";
  blocks.add(prefix, Home::last_stage, kinds, depths);
  Block first{prefix, {}, Home::last_stage}, last{prefix, {}, Home::last_stage};
  const int length = static_cast<int>(kinds.size());
  for (int depth = 0; depth < static_cast<int>(depths); ++depth) {
    first.layers.push_back(depth * length);
    last.layers.push_back((depth + 1) * length - 1);
  }
  patterns.each(first, "eh_proj.weight", {hidden, 2 * hidden});
  patterns.each(first, "enorm.weight", {hidden});
  patterns.each(first, "hnorm.weight", {hidden});
  patterns.each(last, "final_layernorm.weight", {hidden});
}

}  // namespace

void nemotron_h(const Config& config, Inventory& inventory) {
  config.require_untied();
  for (const char* key : {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"})
    config.only(key, false);
  config.only("mlp_hidden_act", "relu2");  // another activation would bring gate projections
  const Kinds kinds = read_kinds(config, "hybrid_override_pattern", "layers_block_type");
  if (kinds.empty())
    config.refuse("hybrid_override_pattern", "nothing", "a pattern, here or in layers_block_type");
  if (config.has("num_hidden_layers") &&
      config.size("num_hidden_layers") != static_cast<std::int64_t>(kinds.size())) {
    config.refuse("num_hidden_layers", std::to_string(config.size("num_hidden_layers")),
                  fmt::format("{}, the length of the pattern", kinds.size()));
  }
  inventory.layers = static_cast<int>(kinds.size());
  const bool sparse = std::find(kinds.begin(), kinds.end(), Kind::moe) != kinds.end();
  inventory.experts = sparse ? config.size("n_routed_experts", max_experts) : 0;

  const std::int64_t hidden = config.size("hidden_size");
  const std::int64_t words = config.size("vocab_size");
  Patterns patterns(inventory);
  patterns.once(Home::first_stage, "backbone.embeddings.weight", {words, hidden}, vocabulary);
  Blocks blocks(config, patterns, hidden);
  blocks.add("backbone.layers.{l}.", Home::layer, kinds, 1);
  patterns.once(Home::last_stage, "backbone.norm_f.weight", {hidden});
  patterns.once(Home::last_stage, "lm_head.weight", {words, hidden}, vocabulary);
  add_mtp(config, patterns, blocks, hidden);
}

}  // namespace isthmus::families
