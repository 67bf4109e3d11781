// deepseek_v3 and kimi_k2: latent attention, shared experts, sigmoid router with a correction bias per
// expert.
#include <nlohmann/json.hpp>

#include "model/families/blocks.hpp"

namespace isthmus::families {

void deepseek_v3(const Config& config, Inventory& inventory) {
  config.only("attention_bias", false);
  config.only("topk_method", "noaux_tc");  // other methods have no correction bias
  const MoeAfterDense model = read_moe_after_dense(config, inventory);
  const LatentAttention attention = read_latent_attention(config);
  Patterns patterns(inventory);
  add_moe_after_dense(patterns, model,
                      [&](const Block& block) { add_latent_attention(patterns, block, attention); });
}

}  // namespace isthmus::families
