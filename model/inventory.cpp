#include "model/inventory.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/families/family.hpp"
#include "model/json_file.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_config_bytes = 16 << 20;
// A thousand times the largest known model. Byte counts stay far below 2^63.
constexpr std::int64_t max_parameters = 2'000'000'000'000'000;

struct Family {
  std::string_view architecture;
  void (*read)(const families::Config&, Inventory&);
};

constexpr std::array known_families{
    Family{"deepseek_v3", families::deepseek_v3}, Family{"glm4_moe", families::glm4_moe},
    Family{"gpt_oss", families::gpt_oss},         Family{"kimi_k2", families::deepseek_v3},
    Family{"kimi_k3", families::kimi_k3},         Family{"llama", families::llama},
    Family{"nemotron_h", families::nemotron_h},   Family{"qwen3", families::qwen3},
    Family{"qwen3_5_moe", families::qwen3_5_moe}, Family{"qwen3_5_moe_text", families::qwen3_5_moe_text},
    Family{"qwen3_moe", families::qwen3_moe},
};

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view p) { return name.starts_with(p); });
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view s) { return name.ends_with(s); });
}

// DeepSeek style: model.layers.N.... with N at or past the last decoder layer.
bool is_appended_layer(std::string_view name, int decoder_layers) {
  constexpr std::string_view prefix = "model.layers.";
  if (!name.starts_with(prefix)) return false;
  std::uint64_t layer = 0;
  const char* const end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + prefix.size(), end, layer);
  if (after == end || *after != '.' || error == std::errc::invalid_argument) return false;
  return error == std::errc::result_out_of_range ||
         layer >= static_cast<std::uint64_t>(std::max(decoder_layers, 0));
}

// DeepSeek-V3's file is models/deepseek-v3.json, or config.json in a folder of that name.
std::string model_name(const std::filesystem::path& file) {
  if (file.stem() != "config") return file.stem().string();
  return std::filesystem::absolute(file).parent_path().filename().string();
}

const Family& find_family(const std::string& architecture, const std::string& file) {
  const auto found = std::find_if(known_families.begin(), known_families.end(),
                                  [&](const Family& family) { return family.architecture == architecture; });
  if (found != known_families.end()) return *found;
  throw InputError(
      {file, 0, "model_type"},
      fmt::format("unknown architecture \"{}\"; known: {}. For any other, give a manifest (JSON: name -> "
                  "shape, dtype) or a checkpoint, whose safetensors headers are read",
                  architecture, fmt::join(known_architectures(), ", ")));
}

// Sizes are limited one by one; this limits their products, before anything multiplies them in 64 bits.
void check_size(const Inventory& inventory, const std::string& file) {
  Int128 sum = 0;
  for (const TensorPattern& pattern : inventory.patterns) {
    Int128 elements = pattern.count();
    for (const std::int64_t extent : pattern.shape) {
      elements *= extent;
      if (elements > max_parameters) break;
    }
    sum += elements;
    if (sum <= max_parameters) continue;
    throw InputError({file, 0, ""},
                     fmt::format("more than {} parameters, counted up to {}", max_parameters, pattern.name),
                     "a smaller model");
  }
}

}  // namespace

std::string_view to_string(Role role) {
  constexpr std::array<std::string_view, 4> names{"bulk", "misc", "mtp", "vision"};
  return names.at(static_cast<std::size_t>(role));
}

std::string_view to_string(QuantisedPart part) {
  constexpr std::array<std::string_view, 3> names{"none", "values", "scales"};
  return names.at(static_cast<std::size_t>(part));
}

std::int64_t TensorPattern::count() const {
  // A what-if with fewer layers may have taken all of a pattern's.
  if (layers.empty() && (home == Home::layer || name.find("{l}") != std::string::npos)) return 0;
  const std::int64_t places = layers.empty() ? 1 : static_cast<std::int64_t>(layers.size());
  return fused_experts || experts == 0 ? places : places * experts;
}

std::int64_t TensorPattern::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

double InventoryTotals::bulk_fraction() const {
  return bytes.value == 0 ? 0.0 : static_cast<double>(bulk_bytes.value) / static_cast<double>(bytes.value);
}

double InventoryTotals::payload_bulk_fraction() const {
  if (payload_bytes.value == 0) return 0.0;
  return static_cast<double>(payload_bulk_bytes.value) / static_cast<double>(payload_bytes.value);
}

InventoryTotals totals(const Inventory& inventory) {
  InventoryTotals sum;
  for (const TensorPattern& pattern : inventory.patterns) {
    const std::int64_t count = pattern.count();
    const Bytes bytes = Bytes{2} * (count * pattern.elements());
    if (pattern.role == Role::mtp) continue;
    sum.payload_bytes += bytes;
    if (pattern.role == Role::vision) continue;
    sum.bytes += bytes;
    sum.tensor_count += count;
    (pattern.role == Role::bulk ? sum.bulk_bytes : sum.misc_bytes) += bytes;
  }
  sum.payload_bulk_bytes = sum.bulk_bytes;
  sum.parameters = sum.bytes.value / 2;
  return sum;
}

Inventory read_model_config(const std::filesystem::path& file) {
  const nlohmann::json json = parse_json(read_text(file, max_config_bytes), file.string());
  if (!json.is_object())
    throw InputError({file.string(), 1, ""}, describe(json), "an object, as in config.json");
  const families::Config config(json, file.string());
  Inventory inventory;
  inventory.model = model_name(file);
  inventory.architecture = config.text("model_type");
  find_family(inventory.architecture, file.string()).read(config, inventory);
  check_size(inventory, file.string());
  return inventory;
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  names.reserve(known_families.size());
  for (const Family& family : known_families) names.emplace_back(family.architecture);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_expert_unknown_to_bulk_rule(const TensorPattern& pattern) {
  const std::size_t dimensions = pattern.fused_experts ? 3 : 2;
  return pattern.experts > 0 && pattern.role == Role::misc && !pattern.scale &&
         pattern.shape.size() == dimensions;
}

Role role_of(std::string_view name, int decoder_layers) {
  if (name.starts_with("mtp.") || is_appended_layer(name, decoder_layers)) return Role::mtp;
  if (starts_with_any(name, {"model.visual.", "vision_tower.", "mm_projector."})) return Role::vision;
  if (name.find("shared_expert") != std::string_view::npos) return Role::misc;
  const bool bulk = ends_with_any(name, {"gate_proj.weight", "up_proj.weight", "down_proj.weight",
                                         "experts.gate_up_proj", "experts.down_proj"});
  return bulk ? Role::bulk : Role::misc;
}

}  // namespace isthmus
