#include "model/recipe_settings.hpp"

#include <charconv>

#include <fmt/format.h>

#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr int max_files = 16;
constexpr int max_references = 8;
constexpr std::size_t max_bases = 16;

std::vector<std::string> plain_items(const YamlNode& node) {
  std::vector<std::string> texts;
  if (node.kind != YamlNode::Kind::list) return texts;
  for (const YamlNode& item : node.children) {
    if (item.kind == YamlNode::Kind::scalar) texts.push_back(item.text);
  }
  return texts;
}

}  // namespace

RecipeSettings::RecipeSettings(const YamlDocument& document, const std::filesystem::path& file)
    : file_(printable(file.string(), 4096)) {
  read_defaults(document, file);
}

void RecipeSettings::read_defaults(const YamlDocument& document, const std::filesystem::path& file) {
  ++files_;
  const YamlValue root = document.root();
  if (const auto defaults = root.find("defaults")) {
    if (files_ == max_files) {
      defaults->refuse("a chain of more than 16 files", "a shorter one without circles");
    }
    const std::vector<YamlValue> bases =
        defaults->is_list() ? defaults->items(max_bases) : std::vector<YamlValue>{*defaults};
    for (const YamlValue& base : bases) {
      const std::filesystem::path path =
          file.parent_path() / base.text("the path of a recipe, relative to this file");
      std::error_code code;
      if (!std::filesystem::is_regular_file(path, code))
        base.refuse("the path of a recipe, relative to this file");
      const std::filesystem::path plain = path.lexically_normal();
      read_defaults(YamlDocument(read_text_file(plain), plain.string()), plain);
    }
  }
  merge(document, root.node(), "");
}

void RecipeSettings::merge(const YamlDocument& document, const YamlNode& mapping, const std::string& prefix) {
  for (const YamlNode& child : mapping.children) {
    const std::string key = prefix + child.key;
    const bool is_mapping = child.kind == YamlNode::Kind::mapping;
    const auto known = values_.find(key);
    const bool merges = is_mapping && known != values_.end() && known->second.kind == YamlNode::Kind::mapping;
    if (!merges) {  // what stood below the key goes with it
      const std::string below = key + '.';
      auto first = values_.lower_bound(below);
      while (first != values_.end() && first->first.starts_with(below)) first = values_.erase(first);
    }
    values_[key] = {child.kind, child.text, YamlValue(document, child, key).where(), plain_items(child)};
    if (is_mapping) merge(document, child, key + '.');
  }
}

Location RecipeSettings::where(std::string_view key) const {
  for (std::string_view parent = key; !parent.empty();) {
    if (const auto found = values_.find(std::string(parent)); found != values_.end()) {
      return {found->second.where.file, found->second.where.line, std::string(key)};
    }
    const std::size_t dot = parent.rfind('.');
    parent = dot == std::string_view::npos ? std::string_view{} : parent.substr(0, dot);
  }
  return {file_, 0, std::string(key)};
}

const RecipeSettings::Value* RecipeSettings::resolve(const std::string& key) const {
  std::string name = key;
  for (int step = 0; step <= max_references; ++step) {
    const auto found = values_.find(name);
    if (found == values_.end()) return nullptr;
    const std::string& text = found->second.text;
    const bool scalar = found->second.kind == YamlNode::Kind::scalar;
    if (!scalar || text.find("${") == std::string::npos) return &found->second;
    const bool plain = text.starts_with("${") && text.find_first_of(":{", 2) == std::string::npos &&
                       text.find('}') == text.size() - 1 && text.size() > 3 && text[2] != '.';
    if (!plain) break;
    name = text.substr(2, text.size() - 3);
  }
  throw InputError(where(key), fmt::format("'{}'", printable(values_.at(key).text)),
                   "a value, or ${dotted.key} that leads to one");
}

bool RecipeSettings::unset(const std::string& key) const {
  const Value* value = resolve(key);
  return value == nullptr || value->kind == YamlNode::Kind::nothing;
}

bool RecipeSettings::is_true(const std::string& key) const {
  const Value* value = resolve(key);
  if (value == nullptr || value->kind != YamlNode::Kind::scalar) return false;
  return value->text == "true" || value->text == "True" || value->text == "TRUE";
}

std::optional<std::string> RecipeSettings::text(const std::string& key) const {
  if (unset(key)) return std::nullopt;
  const Value* value = resolve(key);
  if (value->kind == YamlNode::Kind::list) return "a list";
  return value->kind == YamlNode::Kind::mapping ? "a mapping" : printable(value->text);
}

std::vector<std::string> RecipeSettings::items(const std::string& key) const {
  const Value* value = resolve(key);
  return value == nullptr ? std::vector<std::string>{} : value->items;
}

std::optional<int> RecipeSettings::number(const std::string& key) const {
  if (unset(key)) return std::nullopt;
  const std::string& digits = resolve(key)->text;
  int value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end || value < 1 || value > max_gpus) {
    throw InputError(where(key), fmt::format("'{}'", *text(key)),
                     fmt::format("a whole number from 1 to {}", max_gpus));
  }
  return value;
}

}  // namespace isthmus
