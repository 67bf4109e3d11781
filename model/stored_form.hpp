#pragma once
// How a published checkpoint stores a model, by the quantization_config of its config.json: without one, each
// tensor in its stored dtype; with `fp8` in blocks of 128 x 128, the matrices of model/precision.hpp in FP8
// with F32 scales, save those in modules_to_not_convert.
// Invariant: any other method is refused, never guessed (mxfp4 and compressed-tensors among them).
// Source: HuggingFace transformers' FineGrainedFP8Config, as DeepSeek-V3, Kimi K2 and Qwen3 FP8 use it.

#include <filesystem>
#include <string>
#include <vector>

#include "model/inventory.hpp"

namespace isthmus {

struct StoredForm {
  bool fp8 = false;
  std::vector<std::string> plain_modules;  // modules_to_not_convert; what is below them is plain as well
  friend bool operator==(const StoredForm&, const StoredForm&) = default;
};

/// `path`: a config.json, or a folder with one. Raises InputError for a form that is not known.
StoredForm read_stored_form(const std::filesystem::path& path);

/// The tensors of the checkpoint, their dtype on the wire being the stored one.
Inventory as_stored(const Inventory& inventory, const StoredForm& form);

}  // namespace isthmus
