#include "model/yaml.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/units.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_line = 4096;

std::string described(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::nothing: return "nothing";
    case YamlNode::Kind::list: return node.children.empty() ? "an empty list" : "a list";
    case YamlNode::Kind::mapping: return "a mapping";
    case YamlNode::Kind::scalar:
      return fmt::format("{}'{}'", node.quoted ? "the text " : "", printable(node.text));
  }
  return {};
}

/// Digits without sign or leading zeros (YAML 1.1 reads 010 as 8).
std::optional<std::int64_t> parse_whole(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.front() == '-') return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return value;
}

std::string joined(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

YamlValue YamlDocument::root() const { return {*this, root_, {}}; }

Location YamlValue::where() const { return {document_->origins_[node_->origin], node_->line, key_}; }

void YamlValue::refuse(std::string_view found, std::string_view allowed) const {
  throw InputError(where(), found, allowed);
}

void YamlValue::refuse(std::string_view form) const { refuse(described(*node_), form); }

std::string YamlValue::child_key(std::string_view key) const {
  return fmt::format("{}{}{}", key_, key_.empty() ? "" : ".", key);
}

void YamlValue::allow_only(std::initializer_list<std::string_view> keys) const {
  allow_only(std::vector<std::string_view>(keys));
}

void YamlValue::allow_only(const std::vector<std::string_view>& keys) const {
  if (!is_mapping()) refuse(fmt::format("a mapping with keys {}", joined(keys)));
  for (const YamlNode& child : node_->children) {
    if (std::find(keys.begin(), keys.end(), child.key) != keys.end()) continue;
    const Location where{document_->origins_[child.origin], child.key_line, child_key(printable(child.key))};
    throw InputError(where, "an unknown key", joined(closest_first(child.key, keys)));
  }
}

std::optional<YamlValue> YamlValue::find(std::string_view key) const {
  for (const YamlNode& child : node_->children) {
    if (is_mapping() && child.key == key) return YamlValue(*document_, child, child_key(key));
  }
  return std::nullopt;
}

YamlValue YamlValue::at(std::string_view key) const {
  if (std::optional<YamlValue> value = find(key)) return *value;
  Location place = where();
  place.key = child_key(key);
  throw InputError(place, "nothing", fmt::format("a value; the key '{}' is required here", key));
}

std::vector<YamlValue> YamlValue::items(std::size_t most) const {
  const std::size_t count = node_->children.size();
  if (!is_list() || count == 0) refuse("a list of at least one item");
  if (count > most) refuse(fmt::format("a list of {} items", count), fmt::format("at most {}", most));
  std::vector<YamlValue> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    result.emplace_back(*document_, node_->children[i], child_key(fmt::format("{}", i)));
  }
  return result;
}

std::string YamlValue::text(std::string_view form) const {
  const bool fits =
      node_->kind == YamlNode::Kind::scalar && !node_->text.empty() && node_->text.size() <= max_line;
  if (!fits || first_unprintable(node_->text) != node_->text.size()) refuse(form);
  return node_->text;
}

std::int64_t YamlValue::integer(std::int64_t least, std::int64_t most) const {
  const bool plain = node_->kind == YamlNode::Kind::scalar && !node_->quoted;
  const std::optional<std::int64_t> value = plain ? parse_whole(node_->text) : std::nullopt;
  if (!value || *value < least || *value > most)
    refuse(fmt::format("a whole number from {} to {}", least, most));
  return *value;
}

double YamlValue::number(std::string_view form) const {
  const std::string& text = node_->text;
  const bool plain = node_->kind == YamlNode::Kind::scalar && !node_->quoted;
  // Starting with a digit excludes signs, inf and nan.
  if (!plain || text.empty() || text.front() < '0' || text.front() > '9') refuse(form);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) refuse(form);
  return value;
}

bool YamlValue::flag() const {
  const bool plain = node_->kind == YamlNode::Kind::scalar && !node_->quoted;
  if (!plain || (node_->text != "true" && node_->text != "false")) refuse("true or false");
  return node_->text == "true";
}

void YamlValue::append_range(std::int64_t end, std::vector<std::int64_t>& numbers) const {
  const std::string form = fmt::format("a number from 0 to {0}, or a range first-last within these", end - 1);
  if (node_->kind != YamlNode::Kind::scalar || node_->text.empty()) refuse(form);
  const std::string_view text = node_->text;
  const std::size_t dash = text.find('-');
  const std::optional<std::int64_t> first = parse_whole(text.substr(0, dash));
  const std::optional<std::int64_t> last =
      dash == std::string_view::npos ? first : parse_whole(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= end) refuse(form);
  if (static_cast<std::int64_t>(numbers.size()) + (*last - *first) >= end) {
    refuse(fmt::format("more than {} numbers", end), "each number once");
  }
  for (std::int64_t number = *first; number <= *last; ++number) numbers.push_back(number);
}

std::vector<std::int64_t> YamlValue::ranges(std::int64_t end) const {
  std::vector<std::int64_t> numbers;
  if (is_list()) {
    for (const YamlValue& item : items(to_size(end))) item.append_range(end, numbers);
  } else {
    append_range(end, numbers);
  }
  std::vector<std::int64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated != sorted.end()) refuse(fmt::format("{} twice", *repeated), "each number once");
  return numbers;
}

}  // namespace isthmus
