#include "model/families/family.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/json_file.hpp"

namespace isthmus::families {
namespace {

std::string whole_number(std::int64_t min, std::int64_t max) {
  return fmt::format("a whole number from {} to {}", min, max);
}

// nullopt unless a JSON integer within the range; 4096.0 and "4096" are none.
std::optional<std::int64_t> integer_in(const nlohmann::json& value, std::int64_t min, std::int64_t max) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max))
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  return number >= min && number <= max ? std::optional(number) : std::nullopt;
}

}  // namespace

Config::Config(const nlohmann::json& object, std::string file, std::string prefix)
    : object_(&object), file_(std::move(file)), prefix_(std::move(prefix)) {}

const nlohmann::json* Config::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& Config::at(std::string_view key, std::string_view allowed) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) refuse(key, object_->contains(key) ? "null" : "nothing", allowed);
  return *value;
}

void Config::refuse(std::string_view key, std::string_view found, std::string_view allowed) const {
  throw InputError({file_, 0, prefix_ + std::string(key)}, found, allowed);
}

bool Config::has(std::string_view key) const { return find(key) != nullptr; }

std::int64_t Config::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const std::string allowed = whole_number(min, max);
  const nlohmann::json& value = at(key, allowed);
  const std::optional<std::int64_t> number = integer_in(value, min, max);
  if (!number) refuse(key, describe(value), allowed);
  return *number;
}

std::int64_t Config::size(std::string_view key, std::int64_t max) const { return integer(key, 1, max); }

std::int64_t Config::size_or(std::string_view key, std::int64_t otherwise, std::int64_t max) const {
  return has(key) ? integer(key, 1, max) : otherwise;
}

std::int64_t Config::count(std::string_view key, std::int64_t max) const { return integer(key, 0, max); }

std::int64_t Config::count_or(std::string_view key, std::int64_t otherwise, std::int64_t max) const {
  return has(key) ? integer(key, 0, max) : otherwise;
}

bool Config::flag(std::string_view key) const {
  const nlohmann::json& value = at(key, "true or false");
  if (!value.is_boolean()) refuse(key, describe(value), "true or false");
  return value.get<bool>();
}

bool Config::flag_or(std::string_view key, bool otherwise) const { return has(key) ? flag(key) : otherwise; }

std::string Config::text(std::string_view key) const {
  const nlohmann::json& value = at(key, "a text");
  if (!value.is_string()) refuse(key, describe(value), "a text");
  return value.get<std::string>();
}

std::vector<std::int64_t> Config::sizes(std::string_view key, std::int64_t min, std::int64_t max) const {
  const std::string allowed = fmt::format("a list, each of it {}", whole_number(min, max));
  const nlohmann::json& value = at(key, allowed);
  if (!value.is_array()) refuse(key, describe(value), allowed);
  std::vector<std::int64_t> numbers;
  for (const nlohmann::json& entry : value) {
    const std::optional<std::int64_t> number = integer_in(entry, min, max);
    if (!number) refuse(key, fmt::format("{} in the list", describe(entry)), allowed);
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> Config::texts(std::string_view key) const {
  const nlohmann::json& value = at(key, "a list of texts");
  if (!value.is_array()) refuse(key, describe(value), "a list of texts");
  std::vector<std::string> texts;
  for (const nlohmann::json& entry : value) {
    if (!entry.is_string()) refuse(key, fmt::format("{} in the list", describe(entry)), "a list of texts");
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

Config Config::object(std::string_view key) const {
  const nlohmann::json& value = at(key, "an object");
  if (!value.is_object()) refuse(key, describe(value), "an object");
  return Config(value, file_, prefix_ + std::string(key) + ".");
}

void Config::only(std::string_view key, const nlohmann::json& allowed) const {
  const nlohmann::json* value = find(key);
  if (value != nullptr && *value != allowed) refuse(key, describe(*value), allowed.dump());
}

void Config::require_untied(const Config* outer) const {
  constexpr std::string_view key = "tie_word_embeddings";
  bool stated = false;
  for (const Config* config : {this, outer}) {
    if (config == nullptr || !config->has(key)) continue;
    if (config->flag(key)) config->refuse(key, "true", "false: this family has a head of its own");
    stated = true;
  }
  if (!stated) refuse(key, "nothing", "false: this family has a head of its own");
}

std::vector<int> layer_range(std::int64_t begin, std::int64_t end) {
  std::vector<int> layers(to_size(std::max<std::int64_t>(end - begin, 0)));
  std::iota(layers.begin(), layers.end(), static_cast<int>(begin));
  return layers;
}

TensorPattern* Patterns::add(const Block& block, std::string_view name, Shape shape, TensorParallel split) {
  if (block.layers.empty()) return nullptr;
  TensorPattern& pattern = inventory_.patterns.emplace_back();
  pattern.name = block.prefix + std::string(name);
  pattern.shape = std::move(shape);
  pattern.tensor_parallel = split;
  pattern.home = block.home;
  pattern.layers = block.layers;
  std::string first = pattern.name;
  const std::size_t layer = first.find("{l}");
  ISTHMUS_ASSERT(layer != std::string::npos, "{} stands in a block of layers", first);
  pattern.role = role_of(first.replace(layer, 3, std::to_string(block.layers.front())), inventory_.layers);
  return &pattern;
}

void Patterns::once(Home home, std::string name, Shape shape, TensorParallel split) {
  TensorPattern& pattern = inventory_.patterns.emplace_back();
  pattern.role = role_of(name, inventory_.layers);
  pattern.name = std::move(name);
  pattern.shape = std::move(shape);
  pattern.tensor_parallel = split;
  pattern.home = home;
}

void Patterns::each(const Block& block, std::string_view name, Shape shape, TensorParallel split,
                    Dtype stored) {
  TensorPattern* pattern = add(block, name, std::move(shape), split);
  if (pattern != nullptr) pattern->stored = stored;
}

void Patterns::key_value(const Block& block, std::string_view name, std::int64_t heads, Shape shape) {
  TensorPattern* pattern = add(block, name, std::move(shape), TensorParallel::rows);
  if (pattern != nullptr) pattern->key_value_heads = heads;
}

void Patterns::experts(const Block& block, std::string_view name, std::int64_t experts, Shape shape,
                       TensorParallel split) {
  TensorPattern* pattern = add(block, name, std::move(shape), split);
  if (pattern != nullptr) pattern->experts = experts;
}

void Patterns::fused_experts(const Block& block, std::string_view name, Shape shape, TensorParallel split,
                             bool transposed) {
  const std::int64_t experts = shape.front();
  TensorPattern* pattern = add(block, name, std::move(shape), split);
  if (pattern == nullptr) return;
  pattern->experts = experts;
  pattern->fused_experts = true;
  pattern->transposed = transposed;
}

}  // namespace isthmus::families
