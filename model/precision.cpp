#include "model/precision.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/tensor_name.hpp"

namespace isthmus {
namespace {

constexpr std::array<std::string_view, 4> precision_names{"bf16", "fp8", "fp8-bf16-attention", "mxfp8"};

template <std::size_t count>
bool has_suffix_of(std::string_view name, const std::array<std::string_view, count>& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [name](std::string_view suffix) { return has_name_suffix(name, suffix); });
}

bool is_fused_matrix(const TensorPattern& pattern) {
  constexpr std::array<std::string_view, 2> names{"experts.gate_up_proj", "experts.down_proj"};
  return pattern.fused_experts && pattern.shape.size() == 3 && has_suffix_of(pattern.name, names);
}

bool is_linear(const TensorPattern& pattern) {
  constexpr std::array<std::string_view, 8> others{
      "embed_tokens.weight", "embeddings.weight", "lm_head.weight", "shared_head.head.weight",
      "eh_proj.weight",      "mtp.fc.weight",     "gate.weight",    "router.weight"};
  if (pattern.role == Role::vision || pattern.scale) return false;
  if (is_fused_matrix(pattern)) return true;
  const std::vector<std::int64_t>& shape = pattern.shape;
  return pattern.name.ends_with(".weight") && shape.size() == 2 && shape[0] > 1 && shape[1] > 1 &&
         !has_suffix_of(pattern.name, others);
}

bool is_attention(std::string_view name) {
  constexpr std::array<std::string_view, 4> in_mixers{"mixer.q_proj.weight", "mixer.k_proj.weight",
                                                      "mixer.v_proj.weight", "mixer.o_proj.weight"};
  return name.find(".self_attn.") != name.npos || name.find(".linear_attn.") != name.npos ||
         has_suffix_of(name, in_mixers);
}

/// One expert's matrix of a fused pattern, as a checkpoint that keeps experts apart names and shapes it.
TensorPattern expert_matrix(const TensorPattern& fused, std::string_view old_name, std::string_view new_name,
                            std::vector<std::int64_t> shape) {
  TensorPattern matrix = fused;
  matrix.name.replace(matrix.name.size() - old_name.size(), old_name.size(), new_name);
  matrix.shape = std::move(shape);
  matrix.fused_experts = matrix.transposed = false;
  return matrix;
}

std::vector<TensorPattern> matrices(const TensorPattern& pattern) {
  if (!is_fused_matrix(pattern)) return {pattern};
  std::vector<std::int64_t> shape{pattern.shape[1], pattern.shape[2]};
  if (pattern.transposed) std::swap(shape[0], shape[1]);
  if (has_name_suffix(pattern.name, "experts.down_proj"))
    return {expert_matrix(pattern, "down_proj", "{e}.down_proj.weight", shape)};
  shape[0] /= 2;
  return {expert_matrix(pattern, "gate_up_proj", "{e}.gate_proj.weight", shape),
          expert_matrix(pattern, "gate_up_proj", "{e}.up_proj.weight", shape)};
}

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

TensorPattern scales_of(const TensorPattern& weight, WirePrecision precision) {
  TensorPattern scales = weight;
  const bool groups = precision == WirePrecision::mxfp8;
  scales.name += groups ? "_scale" : "_scale_inv";
  scales.shape = groups ? std::vector{weight.shape[0], ceil_quotient(weight.shape[1], mxfp8_group)}
                        : std::vector{ceil_quotient(weight.shape[0], fp8_block),
                                      ceil_quotient(weight.shape[1], fp8_block)};
  scales.stored = scales.wire = groups ? Dtype::u8 : Dtype::f32;
  if (scales.role == Role::bulk) scales.role = Role::misc;
  scales.scale = true;
  return scales;
}

void quantise(TensorPattern weight, WirePrecision precision, std::vector<TensorPattern>& patterns) {
  const TensorPattern scales = scales_of(weight, precision);
  weight.stored = weight.wire = Dtype::fp8_e4m3;
  if (precision != WirePrecision::mxfp8) weight.block = fp8_block;
  if (precision == WirePrecision::mxfp8 && weight.tensor_parallel == TensorParallel::columns)
    weight.block = mxfp8_group;
  patterns.push_back(std::move(weight));
  patterns.push_back(scales);
}

}  // namespace

std::string_view to_string(WirePrecision precision) {
  return precision_names.at(static_cast<std::size_t>(precision));
}

std::optional<WirePrecision> parse_wire_precision(std::string_view name) {
  const auto* const found = std::find(precision_names.begin(), precision_names.end(), name);
  if (found == precision_names.end()) return std::nullopt;
  return static_cast<WirePrecision>(found - precision_names.begin());
}

bool is_quantised(const TensorPattern& pattern, WirePrecision precision) {
  if (precision == WirePrecision::bf16 || !is_linear(pattern)) return false;
  return precision != WirePrecision::fp8_bf16_attention || !is_attention(pattern.name);
}

Inventory in_precision(const Inventory& inventory, WirePrecision precision) {
  if (precision == WirePrecision::bf16) return inventory;
  Inventory travelling = inventory;
  travelling.patterns.clear();
  for (const TensorPattern& pattern : inventory.patterns) {
    if (!is_quantised(pattern, precision)) {
      travelling.patterns.push_back(pattern);
      continue;
    }
    for (TensorPattern& matrix : matrices(pattern))
      quantise(std::move(matrix), precision, travelling.patterns);
  }
  return travelling;
}

bool takes_part(Role role, PayloadOptions options) {
  return (role != Role::mtp || options.mtp) && (role != Role::vision || options.vision);
}

const TensorPattern* first_broken_group(const Inventory& inventory, PayloadOptions options) {
  const auto broken = [options](const TensorPattern& pattern) {
    if (!takes_part(pattern.role, options) || !is_quantised(pattern, WirePrecision::mxfp8)) return false;
    return matrices(pattern).front().shape.back() % mxfp8_group != 0;
  };
  const auto found = std::find_if(inventory.patterns.begin(), inventory.patterns.end(), broken);
  return found == inventory.patterns.end() ? nullptr : &*found;
}

double PrecisionTotals::bulk_fraction() const {
  return bytes.value == 0 ? 0.0 : static_cast<double>(bulk_bytes.value) / static_cast<double>(bytes.value);
}

PrecisionTotals precision_totals(const Inventory& travelling, PayloadOptions options) {
  PrecisionTotals sum;
  for (const TensorPattern& pattern : travelling.patterns) {
    if (!takes_part(pattern.role, options)) continue;
    const std::int64_t count = pattern.count();
    const Bytes bytes = element_size(pattern.wire) * (count * pattern.elements());
    const bool bulk = pattern.role == Role::bulk;
    sum.bytes += bytes;
    (bulk ? sum.bulk_bytes : sum.misc_bytes) += bytes;
    sum.tensor_count += count;
    sum.bulk_tensor_count += bulk ? count : 0;
    if (!pattern.scale) continue;
    sum.scale_bytes += bytes;
    sum.scale_tensor_count += count;
  }
  return sum;
}

void mark_receiver_quantises(Inventory& inventory) {
  for (TensorPattern& pattern : inventory.patterns)
    pattern.receiver_quantises = is_quantised(pattern, WirePrecision::mxfp8);
}

void mark_source_quantises(Inventory& travelling) {
  for (TensorPattern& pattern : travelling.patterns) {
    if (pattern.wire == Dtype::fp8_e4m3) pattern.quantised = QuantisedPart::values;
    if (pattern.scale) pattern.quantised = QuantisedPart::scales;
  }
}

std::string values_name(std::string_view scales) {
  constexpr std::string_view suffix = "_scale";
  std::string name(scales);
  const std::size_t at = name.rfind(suffix);
  return at == std::string::npos ? name : name.erase(at, suffix.size());
}

Bytes quantising_traffic(QuantisedPart part, Bytes made) {
  const std::int64_t bf16 = element_size(Dtype::bf16).value;
  switch (part) {
    case QuantisedPart::none: return {};
    case QuantisedPart::values: return made * (bf16 + 1);
    case QuantisedPart::scales: return made * (bf16 * mxfp8_group + 1);
  }
  return {};
}

std::int64_t target_block(const RefitTensor& tensor) {
  const bool groups = tensor.receiver_quantises && tensor.tensor_parallel == TensorParallel::columns;
  return groups ? mxfp8_group : tensor.block;
}

Bytes live_bytes(const RefitTensor& tensor, Bytes on_wire) {
  if (!tensor.receiver_quantises) return on_wire;
  const std::int64_t elements = on_wire.value / element_size(tensor.dtype).value;
  return {elements + elements / mxfp8_group};
}

}  // namespace isthmus
