#include "model/stored_form.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/json_file.hpp"
#include "model/precision.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_config_bytes = 16 << 20;
constexpr std::string_view section = "quantization_config";

std::string module_of(const TensorPattern& pattern, int layer) {
  std::string name = pattern.name.substr(0, pattern.name.rfind('.'));
  const std::size_t at = name.find("{l}");
  return at == std::string::npos ? name : name.replace(at, 3, std::to_string(layer));
}

bool is_plain(const std::string& module, const StoredForm& form) {
  return std::any_of(form.plain_modules.begin(), form.plain_modules.end(), [&](const std::string& plain) {
    return module.starts_with(plain) && (module.size() == plain.size() || module[plain.size()] == '.');
  });
}

/// The layers of a pattern that are stored plain, or those that are not; a pattern without layers is one.
TensorPattern part(const TensorPattern& pattern, const StoredForm& form, bool plain) {
  TensorPattern part = pattern;
  std::erase_if(part.layers, [&](int layer) { return is_plain(module_of(pattern, layer), form) != plain; });
  const bool whole = pattern.layers.empty() && is_plain(module_of(pattern, 0), form) == plain;
  if (part.layers.empty() && !whole) part.name.clear();
  return part;
}

void require_fp8_blocks(const nlohmann::json& config, const std::string& file) {
  const auto require = [&](const char* key, const nlohmann::json& allowed) {
    const auto found = config.find(key);
    if (found != config.end() && *found == allowed) return;
    throw InputError({file, 0, std::string(section) + "." + key},
                     found == config.end() ? "nothing" : describe(*found),
                     allowed.dump() + " (no other stored form is known)");
  };
  require("quant_method", "fp8");
  require("weight_block_size", {fp8_block, fp8_block});
}

}  // namespace

StoredForm read_stored_form(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "config.json" : path;
  const nlohmann::json json = parse_json(read_text(file, max_config_bytes), file.string());
  if (!json.is_object() || !json.contains("model_type"))
    throw InputError({file.string(), 0, ""}, "no configuration",
                     "a config.json, which says how it is stored");
  const nlohmann::json& config =
      !json.contains(section) && json.contains("text_config") ? json["text_config"] : json;
  StoredForm form;
  if (!config.is_object() || !config.contains(section) || config[section].is_null()) return form;
  if (!config[section].is_object())
    throw InputError({file.string(), 0, std::string(section)}, describe(config[section]), "an object");
  require_fp8_blocks(config[section], file.string());
  form.fp8 = true;
  const nlohmann::json plain = config[section].value("modules_to_not_convert", nlohmann::json());
  if (plain.is_null()) return form;
  const auto is_text = [](const nlohmann::json& item) { return item.is_string(); };
  if (!plain.is_array() || !std::all_of(plain.begin(), plain.end(), is_text)) {
    throw InputError({file.string(), 0, std::string(section) + ".modules_to_not_convert"}, describe(plain),
                     "a list of module names");
  }
  form.plain_modules = plain.get<std::vector<std::string>>();
  return form;
}

Inventory as_stored(const Inventory& inventory, const StoredForm& form) {
  Inventory stored = inventory;
  stored.patterns.clear();
  const auto add_plain = [&stored](TensorPattern pattern) {
    pattern.wire = pattern.stored;
    stored.patterns.push_back(std::move(pattern));
  };
  for (const TensorPattern& pattern : inventory.patterns) {
    if (!form.fp8 || !is_quantised(pattern, WirePrecision::fp8)) {
      add_plain(pattern);
      continue;
    }
    if (TensorPattern plain = part(pattern, form, true); !plain.name.empty()) add_plain(std::move(plain));
    TensorPattern quantised = part(pattern, form, false);
    if (quantised.name.empty()) continue;
    Inventory alone;
    alone.patterns.push_back(std::move(quantised));
    alone = in_precision(alone, WirePrecision::fp8);
    std::move(alone.patterns.begin(), alone.patterns.end(), std::back_inserter(stored.patterns));
  }
  return stored;
}

}  // namespace isthmus
