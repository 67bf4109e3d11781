#pragma once
// The parts that several families are made of: ends, attention, FFN, and two whole skeletons (dense; MoE
// after dense). Splits follow vLLM: a projection into heads or into the FFN's inner dimension is cut by rows,
// the projection back by columns; norms, routers and latent down-projections are on every rank.

#include <functional>

#include "model/families/family.hpp"

namespace isthmus::families {

/// `{prefix}embed_tokens.weight`, `{prefix}norm.weight`, and unless tied the head, which has a name of its
/// own.
struct Ends {
  std::string prefix;  // "model."
  std::string head = "lm_head.weight";
  std::int64_t vocabulary = 0, hidden = 0;
  bool tied = false;
};
void add_ends(Patterns& patterns, const Ends& ends);

/// input_layernorm and post_attention_layernorm.
void add_layer_norms(Patterns& patterns, const Block& block, std::int64_t hidden);

/// Attention whose key and value heads serve groups of query heads.
struct GroupedAttention {
  std::int64_t hidden = 0, heads = 0, key_value_heads = 0, head_size = 0;
  bool query_key_norms = false;  // one norm per head for q and k
  bool biases = false;           // on q, k, v
  std::int64_t query_scale = 1;  // 2 with an output gate: each head's gate rows follow its query rows
};
enum class IfMissing : std::uint8_t { refuse, derive };
/// num_attention_heads, num_key_value_heads (derived: as many) and head_dim (derived: hidden_size / heads).
GroupedAttention read_grouped_attention(const Config& config, IfMissing key_value_heads, IfMissing head_size);
/// `name` ends in a dot.
void add_grouped_attention(Patterns& patterns, const Block& block, const GroupedAttention& attention,
                           const std::string& name = "self_attn.");

/// Multi-head latent attention (DeepSeek).
struct LatentAttention {
  std::int64_t hidden = 0, heads = 0, query_rank = 0, key_value_rank = 0;
  std::int64_t plain_size = 0, rotary_size = 0, value_size = 0;  // per head
};
LatentAttention read_latent_attention(const Config& config);
void add_latent_attention(Patterns& patterns, const Block& block, const LatentAttention& attention);

/// `{name}gate_proj`, `up_proj`, `down_proj`; `name` ends in a dot ("mlp.", "mlp.shared_experts.").
void add_gated_mlp(Patterns& patterns, const Block& block, const std::string& name, std::int64_t hidden,
                   std::int64_t inner);
/// The same per expert, `name` being "mlp.experts.{e}.".
void add_gated_experts(Patterns& patterns, const Block& block, const std::string& name, std::int64_t experts,
                       std::int64_t hidden, std::int64_t inner);

/// A whole dense model; biases on attention or FFN are not covered.
void add_dense_model(const Config& config, Inventory& inventory, bool query_key_norms);

/// Layers 0 ... first_k_dense_replace - 1 are dense, the others MoE with shared experts (DeepSeek, GLM).
struct MoeAfterDense {
  std::int64_t layers = 0, hidden = 0, vocabulary = 0, dense_inner = 0, moe_inner = 0;
  std::int64_t experts = 0, shared_experts = 0, dense_layers = 0, mtp_layers = 0;
};
MoeAfterDense read_moe_after_dense(const Config& config, Inventory& inventory);
/// The whole model: `add_attention` adds one block's attention. MTP layers are complete MoE layers after the
/// last decoder layer, with copies of embedding and head.
void add_moe_after_dense(Patterns& patterns, const MoeAfterDense& model,
                         const std::function<void(const Block&)>& add_attention);

}  // namespace isthmus::families
