#pragma once
// What `isthmus inventory` prints: a model's name patterns with shape, count, dtype, role and bytes, the
// totals, and on demand every single tensor by its HuggingFace name; as text for people or as JSON
// (docs/json.md). Bytes are those of the form that was asked for: 2 per element in BF16 whatever the stored
// dtype, 1 for what is quantised, scales apart. The payload is what a refit moves.
// Invariant: the tensors listed are as many as tensor_count counts, MTP and vision apart.
// Large models have 500,000 tensors: their list is written as text, never held as a document.

#include <string>

#include "model/inventory.hpp"

namespace isthmus::report {

struct InventoryView {
  std::string form = "bf16";            // what `travelling` was made with
  PayloadOptions payload{false, true};  // what counts into the payload beside the main model
  bool tensors = false;                 // every tensor, not only the patterns
  bool json = false;
};

/// `travelling` is an inventory as model/precision.hpp or model/stored_form.hpp made it.
std::string inventory_document(const Inventory& travelling, const InventoryView& view);

}  // namespace isthmus::report
