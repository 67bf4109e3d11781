#pragma once
// The tensors of a model, derived from its HuggingFace config.json: name patterns with shapes, counts and
// roles. A pattern stands for layers x experts tensors of one shape. A *refit tensor* is what one transfer
// moves: the experts of one layer and projection are stacked into one tensor [experts, rows, columns], as
// refits do. Invariant: parameters = sum over patterns of count x volume. Bytes are 2 per element (BF16),
// whatever the stored dtype, unless a function says "stored". Roles follow the published name rule of NeMo
// RL's reshard refit: bulk tensors are resharded by the hybrid methods, misc tensors are broadcast packed;
// mtp (multi-token prediction) and vision are labels of ours.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/layout.hpp"
#include "model/units.hpp"

namespace isthmus {

enum class Role : std::uint8_t { bulk, misc, mtp, vision };
std::string_view to_string(Role role);

/// How an engine splits a tensor over its tensor-parallel ranks. `rows`: dimension 0 of the stored tensor
/// (column parallel in Megatron's words); `columns`: dimension 1 (row parallel); `vocabulary`: dimension 0,
/// padded as needed.
enum class TensorParallel : std::uint8_t { replicated, rows, columns, vocabulary };

/// What a source computes of a matrix that it holds in BF16 before sending it: MXFP8 values, or their scales.
enum class QuantisedPart : std::uint8_t { none, values, scales };
std::string_view to_string(QuantisedPart part);

/// Where a tensor lives under pipeline parallelism.
enum class Home : std::uint8_t { layer, first_stage, last_stage };

struct TensorPattern {
  std::string name;                 // "model.layers.{l}.mlp.experts.{e}.gate_proj.weight"
  std::vector<std::int64_t> shape;  // of one tensor, as stored: a linear layer is [out, in]
  Dtype stored = Dtype::bf16;       // dtype in the published BF16 checkpoint
  Role role = Role::misc;
  TensorParallel tensor_parallel = TensorParallel::replicated;
  Home home = Home::first_stage;
  std::vector<int> layers;     // values of {l}, ascending; MTP and vision count theirs on their own home
  std::int64_t experts = 0;    // values of {e}, or leading dimension of fused experts; 0 for other tensors
  bool fused_experts = false;  // one stored tensor [experts, ...] per layer instead of one per expert
  bool transposed = false;     // stored [..., in, out] (gpt_oss experts); tensor_parallel speaks of [out, in]
  // k and v projections: their rows are so many heads, which engines with more ranks repeat; 0 for others
  std::int64_t key_value_heads = 0;
  // What model/precision.hpp decides: dtype in a refit, elements that shards along the cut dimension keep
  // together, whether these are the scales of the pattern before, of BF16 that the receiver quantises, and
  // what the source quantises.
  Dtype wire = Dtype::bf16;
  std::int64_t block = 1;
  bool scale = false;
  bool receiver_quantises = false;
  QuantisedPart quantised = QuantisedPart::none;

  std::int64_t count() const;     // tensors
  std::int64_t elements() const;  // of one tensor
  friend bool operator==(const TensorPattern&, const TensorPattern&) = default;
};

struct Inventory {
  std::string model;         // the file's stem; for a config.json the name of its folder
  std::string architecture;  // model_type of config.json; empty when read from a list of tensors
  int layers = 0;            // decoder layers without MTP
  std::int64_t experts = 0;  // routed experts per MoE layer; 0 when dense
  std::vector<TensorPattern> patterns;

  friend bool operator==(const Inventory&, const Inventory&) = default;
};

struct InventoryTotals {
  std::int64_t parameters = 0;  // main model: without MTP and vision
  Bytes bytes, bulk_bytes, misc_bytes;
  std::int64_t tensor_count = 0;
  Bytes payload_bytes, payload_bulk_bytes;  // what a refit moves: with vision, without MTP
  double bulk_fraction() const;
  double payload_bulk_fraction() const;
};
InventoryTotals totals(const Inventory& inventory);

/// Reads a HuggingFace config.json. Raises InputError with file and key for an unknown architecture (the
/// message lists the known ones), a missing key, or a value outside what the family allows.
Inventory read_model_config(const std::filesystem::path& file);
/// The architectures (model_type) that read_model_config knows, sorted.
std::vector<std::string> known_architectures();

/// The published name rule for a HuggingFace tensor name; `decoder_layers` tells MTP layers (DeepSeek style:
/// layer index at or past the last decoder layer) from others.
Role role_of(std::string_view name, int decoder_layers);

/// Matrices of routed experts whose names the bulk rule does not know (w1, w2, w3): they are misc by it.
bool is_expert_unknown_to_bulk_rule(const TensorPattern& pattern);

/// One tensor as a refit moves it.
struct RefitTensor {
  std::string name;                 // grouped: "model.layers.3.mlp.experts.gate_proj.weight"
  std::vector<std::int64_t> shape;  // stacked: [experts, out, in]
  Dtype dtype = Dtype::bf16;
  Role role = Role::misc;  // bulk or misc under the refit's own rule
  TensorParallel tensor_parallel = TensorParallel::replicated;
  Home home = Home::first_stage;
  int layer = -1;          // for home == layer
  bool expert = false;     // sharded over expert-parallel ranks on dimension 0
  std::int64_t parts = 1;  // HuggingFace tensors stacked in it: what exporters and loaders handle one by one
  std::int64_t key_value_heads = 0;  // as in the pattern, and so are these
  std::int64_t block = 1;
  bool receiver_quantises = false;
  QuantisedPart quantised = QuantisedPart::none;
  std::int64_t copy_of = 0;  // copies of the first experts of so many, for spare slots; 0 for others
  bool tied_head = false;    // the embedding once more, as the head of the last generation stage
  bool copy = false;         // its elements are all another tensor's: bounds do not count them again
  bool install = false;      // useless on a rank until the engine has loaded or processed all of it there

  friend bool operator==(const RefitTensor&, const RefitTensor&) = default;
};

/// Which extras take part in a refit.
struct PayloadOptions {
  bool mtp = false;
  bool vision = false;
};

/// The refit's tensors in transfer order: embedding side, layers ascending (patterns in inventory order
/// within a layer), then the last stage's. Fused gate_up experts become two tensors; transposed ones travel
/// as [experts, out, in]. Shapes have 1 to max_dimensions dimensions: of longer ones the last are merged.
/// `is_bulk` decides the role of main-model patterns; MTP and vision are misc.
std::vector<RefitTensor> refit_tensors(const Inventory& inventory, PayloadOptions options,
                                       const std::function<bool(const TensorPattern&)>& is_bulk);

}  // namespace isthmus
