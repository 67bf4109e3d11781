#pragma once
// What the wire carries of a model. The rules of which tensor is quantised, and into what, stand here alone.
//   fp8                 blocks of 128 x 128: a matrix [o, i] is fp8_e4m3, one byte per element, and gains a
//                       sibling <name>_scale_inv [ceil(o / 128), ceil(i / 128)] in f32
//   fp8_bf16_attention  the same, the projections of attention stay BF16
//   mxfp8               groups of 32 along the last dimension: fp8_e4m3, and <name>_scale [o, i / 32] in u8
// Quantised are all matrices of linear layers, the experts' too, save embeddings, heads, what joins MTP's two
// inputs (eh_proj, mtp.fc), routers and the vision tower; norms, biases, convolutions, matrices of one row or
// column are none. Fused experts travel one by one, as checkpoints of these forms store them. Invariant:
// scales follow their weight in transfer order, are split as it is in units of blocks (FSDP cuts both by
// ceil), and are misc by name.
// Everything else travels as BF16, 2 bytes per element, whatever its stored dtype.
// Sources: DeepSeek-V3's checkpoint (FP8), OCP Microscaling 1.0 (MXFP8).

#include <optional>
#include <string>
#include <string_view>

#include "model/inventory.hpp"

namespace isthmus {

enum class WirePrecision : std::uint8_t { bf16, fp8, fp8_bf16_attention, mxfp8 };
/// As scenarios spell it: "bf16", "fp8", "fp8-bf16-attention", "mxfp8".
std::string_view to_string(WirePrecision precision);
std::optional<WirePrecision> parse_wire_precision(std::string_view name);
inline constexpr std::string_view wire_precision_form = "bf16, fp8, fp8-bf16-attention or mxfp8";

/// Elements per side of a block, and in a group.
inline constexpr std::int64_t fp8_block = 128, mxfp8_group = 32;

/// True for what stands in 8 bits in this precision.
bool is_quantised(const TensorPattern& pattern, WirePrecision precision);

/// The tensors as they travel: quantised weights and, right behind each, its scales.
Inventory in_precision(const Inventory& inventory, WirePrecision precision);

/// Whether a tensor of this role moves with a refit; main-model tensors always do.
bool takes_part(Role role, PayloadOptions options);

/// The first tensor that takes part and whose rows MXFP8 would have to quantise, but whose length is no
/// multiple of the group; nullptr when all are.
const TensorPattern* first_broken_group(const Inventory& inventory, PayloadOptions options);

/// What a refit in one precision moves. bytes = bulk + misc, tensors as HuggingFace lists them.
struct PrecisionTotals {
  Bytes bytes, bulk_bytes, misc_bytes, scale_bytes;  // scales are part of misc
  std::int64_t tensor_count = 0, bulk_tensor_count = 0, scale_tensor_count = 0;
  double bulk_fraction() const;
};
/// `travelling` is what in_precision gave.
PrecisionTotals precision_totals(const Inventory& travelling, PayloadOptions options = {});

/// Marks what a receiver quantises to MXFP8 on arrival; the wire stays BF16.
void mark_receiver_quantises(Inventory& inventory);
/// Marks what sources quantise to MXFP8 before they send it, of an inventory in that precision.
void mark_source_quantises(Inventory& travelling);
/// The name of the values that a tensor of scales belongs to.
std::string values_name(std::string_view scales);
/// Bytes that a source reads and writes in memory to make so many bytes of values or of scales: 2 bytes of
/// BF16 for each value, 64 for each scale, for a scale is the exponent of the largest of its 32.
Bytes quantising_traffic(QuantisedPart part, Bytes made);
/// How many elements along the cut dimension the shards of the receiving side must keep together.
std::int64_t target_block(const RefitTensor& tensor);
/// Bytes that a part of `tensor` takes on a generation rank once it is loaded.
Bytes live_bytes(const RefitTensor& tensor, Bytes on_wire);

}  // namespace isthmus
