#pragma once
// Every tensor that an inventory's patterns stand for, by its HuggingFace name.
// Invariant: a pattern without layers or without experts stands for one tensor of each of the other; {l} and
// {e} are replaced by the numbers.

#include <string>
#include <vector>

#include "model/inventory.hpp"

namespace isthmus::testing {

/// Calls use(name, pattern) for each tensor.
template <class Use>
void for_each_tensor(const Inventory& inventory, const Use& use) {
  for (const TensorPattern& pattern : inventory.patterns) {
    const bool by_expert = pattern.name.find("{e}") != std::string::npos;
    for (const int layer : pattern.layers.empty() ? std::vector<int>{0} : pattern.layers) {
      for (std::int64_t expert = 0; expert < (by_expert ? pattern.experts : 1); ++expert) {
        std::string name = pattern.name;
        if (!pattern.layers.empty()) name.replace(name.find("{l}"), 3, std::to_string(layer));
        if (by_expert) name.replace(name.find("{e}"), 3, std::to_string(expert));
        use(name, pattern);
      }
    }
  }
}

}  // namespace isthmus::testing
