// glm4_moe: DeepSeek's MoE with grouped-query attention. attention_bias gives biases to q, k, v, not to o.
#include "model/families/blocks.hpp"

namespace isthmus::families {

void glm4_moe(const Config& config, Inventory& inventory) {
  const MoeAfterDense model = read_moe_after_dense(config, inventory);
  GroupedAttention attention = read_grouped_attention(config, IfMissing::refuse, IfMissing::derive);
  attention.biases = config.flag_or("attention_bias", false);
  attention.query_key_norms = config.flag_or("use_qk_norm", false);
  Patterns patterns(inventory);
  add_moe_after_dense(patterns, model,
                      [&](const Block& block) { add_grouped_attention(patterns, block, attention); });
}

}  // namespace isthmus::families
