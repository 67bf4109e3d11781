// llama: dense, grouped-query attention without norms.
#include "model/families/blocks.hpp"

namespace isthmus::families {

void llama(const Config& config, Inventory& inventory) { add_dense_model(config, inventory, false); }

}  // namespace isthmus::families
