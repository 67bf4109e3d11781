// qwen3: dense, grouped-query attention with a norm on every query and key head.
#include "model/families/blocks.hpp"

namespace isthmus::families {

void qwen3(const Config& config, Inventory& inventory) { add_dense_model(config, inventory, true); }

}  // namespace isthmus::families
