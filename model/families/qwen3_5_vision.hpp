#pragma once
// The vision tower of Qwen3.5: patches, blocks of attention and FFN with biases, one merger into the text
// width. Engines run it whole on every rank or split it, by option; here every rank holds it whole. It stands
// on the first pipeline stage.

#include "model/families/family.hpp"

namespace isthmus::families {

void add_qwen3_5_vision(const Config& config, Inventory& inventory);

}  // namespace isthmus::families
