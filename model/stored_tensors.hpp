#pragma once
// From a bare list of stored tensors (name, shape, dtype) to an inventory: tensors whose names differ only in
// layer and expert form one pattern. What no list can say is read off the names: roles by the published rule,
// splits by model/tensor_name.hpp. Heads of k and v stay unknown (key_value_heads 0).
// The decoder is the stack of layers with the most parameters; DeepSeek's MTP layers are those with an
// eh_proj. An inventory describes the model in BF16: block scales of FP8 weights and rotary tables are no
// parameters and are left out; packed 4-bit and integer weights are refused, since their shapes are not the
// model's.

#include <cstdint>
#include <string>
#include <vector>

#include "model/inventory.hpp"

namespace isthmus {

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  Dtype dtype = Dtype::bf16;
};

/// Raises InputError, with `file`, for an empty list, repeated names, dimensions below 1, experts of a layer
/// that are not 0 ... n - 1 of one shape, fused experts of unclear orientation, and more parameters than
/// configurations may have.
Inventory group_tensors(const std::vector<StoredTensor>& tensors, const std::string& file, std::string model);

}  // namespace isthmus
