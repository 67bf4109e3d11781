#pragma once
// What a stored tensor's name tells: its layer and expert, and how vLLM splits it over tensor-parallel ranks.
// Numbers after `layers` or `blocks` are layers, those after `experts` experts; any other number stays part
// of the name. The splits are those of the families in model/families, by the linear layer's name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/inventory.hpp"

namespace isthmus {

/// A name with its numbers taken out.
struct PatternName {
  std::string text;   // with {l} and {e}
  std::string stack;  // what stands before {l}
  int layer = -1;     // -1 without one, as below
  std::int64_t expert = -1;
};
PatternName take_apart(std::string_view name);

/// True when `name` ends in `suffix`, a sequence of whole dotted parts.
bool has_name_suffix(std::string_view name, std::string_view suffix);

/// The split that a name stands for; `replicated` when it tells nothing.
TensorParallel split_of(std::string_view name);

/// A dtype by its safetensors name ("BF16", "F8_E4M3") or torch name ("bfloat16"); nullopt for any other
/// text.
std::optional<Dtype> parse_stored_dtype(std::string_view name);

}  // namespace isthmus
