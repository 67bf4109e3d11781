#include "model/json_tree.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/text.hpp"
#include "model/units.hpp"

namespace isthmus {
namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t max_depth = 64;

/// Where the parser stands; it copies its iterators, so they share this.
struct Progress {
  int line = 1;
  bool after_break = false;  // the last character read was a line break
};

class CountingIterator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the names that std::iterator_traits reads
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  CountingIterator(const char* at, Progress* progress) : at_(at), progress_(progress) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    progress_->after_break = *at_ == '\n';
    if (progress_->after_break) ++progress_->line;
    ++at_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  Progress* progress_;
};

// nlohmann::json: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
std::string plain_reason(std::string_view text) {
  const std::size_t column = text.find("column");
  const std::size_t colon = text.find(": ", column == std::string_view::npos ? 0 : column);
  return printable(colon == std::string_view::npos ? text : text.substr(colon + 2), 200);
}

/// Appends nodes as nlohmann's parser meets the values.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& file, const Progress& progress, std::vector<JsonNode>& nodes,
          std::string& characters)
      : file_(file), progress_(progress), nodes_(nodes), characters_(characters) {}

  bool null() override { return add(Kind::null, line()); }
  bool boolean(bool value) override { return add(Kind::flag, line(), value ? 1 : 0); }
  bool number_integer(number_integer_t value) override { return add(Kind::integer, number_line(), value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto most = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    if (value > most) return add(Kind::other_number, number_line());
    return add(Kind::integer, number_line(), static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override {
    return add(Kind::other_number, number_line());
  }
  bool binary(binary_t&) override { return add(Kind::null, line()); }
  bool string(string_t& value) override {
    add(Kind::text, line());
    nodes_.back().text_begin = static_cast<std::uint32_t>(characters_.size());
    nodes_.back().text_size = static_cast<std::uint32_t>(value.size());
    characters_ += value;
    return true;
  }
  bool key(string_t& name) override {
    key_begin_ = static_cast<std::uint32_t>(characters_.size());
    key_size_ = static_cast<std::uint32_t>(name.size());
    characters_ += name;
    return true;
  }
  bool start_object(std::size_t) override { return open(Kind::object); }
  bool start_array(std::size_t) override { return open(Kind::list); }
  bool end_array() override { return close(); }
  bool end_object() override {
    refuse_repeated_keys();
    return close();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    throw InputError({file_, number_line(), ""}, "not JSON: " + plain_reason(error.what()));
  }

 private:
  int line() const { return progress_.line; }
  /// The parser has looked one character past a number.
  int number_line() const { return progress_.line - (progress_.after_break ? 1 : 0); }

  bool add(Kind kind, int line, std::int64_t number = 0) {
    if (nodes_.size() >= max_json_values) {
      throw InputError({file_, line, ""}, fmt::format("more than {} values", max_json_values),
                       "fewer values, or several files");
    }
    JsonNode node;
    node.kind = kind;
    node.line = line;
    node.parent = open_.empty() ? 0 : open_.back();
    node.next = static_cast<std::uint32_t>(nodes_.size() + 1);
    node.key_begin = key_begin_;
    node.key_size = key_size_;
    node.number = number;
    nodes_.push_back(node);
    key_size_ = 0;
    return true;
  }
  bool open(Kind kind) {
    if (open_.size() >= max_depth) {
      throw InputError({file_, line(), ""}, fmt::format("JSON nested deeper than {} levels", max_depth),
                       "flatter JSON");
    }
    add(kind, line());
    open_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
    return true;
  }
  bool close() {
    nodes_[open_.back()].next = static_cast<std::uint32_t>(nodes_.size());
    open_.pop_back();
    return true;
  }
  void refuse_repeated_keys() {
    const auto key_of = [this](std::uint32_t index) {
      return std::string_view(characters_).substr(nodes_[index].key_begin, nodes_[index].key_size);
    };
    keys_.clear();
    for (auto child = open_.back() + 1; child < nodes_.size(); child = nodes_[child].next)
      keys_.push_back(child);
    std::sort(keys_.begin(), keys_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(key_of(a), a) < std::pair(key_of(b), b);
    });
    const auto twice = std::adjacent_find(
        keys_.begin(), keys_.end(), [&](std::uint32_t a, std::uint32_t b) { return key_of(a) == key_of(b); });
    if (twice == keys_.end()) return;
    const std::uint32_t second = *std::next(twice);
    throw InputError({file_, nodes_[second].line, printable(key_of(second))},
                     "the key stands twice in one JSON object");
  }

  const std::string& file_;
  const Progress& progress_;
  std::vector<JsonNode>& nodes_;
  std::string& characters_;
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> keys_;
  std::uint32_t key_begin_ = 0, key_size_ = 0;
};

}  // namespace

JsonTree::JsonTree(std::string_view text, const std::string& file) : file_(printable(file, 4096)) {
  if (text.size() > max_json_bytes) {
    throw InputError({file_, 0, ""}, fmt::format("more than {} bytes", max_json_bytes), "a smaller file");
  }
  Progress progress;
  Builder builder(file_, progress, nodes_, characters_);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &progress),
                            CountingIterator(text.data() + text.size(), &progress), &builder);
}

JsonValue JsonTree::root() const { return {*this, 0}; }

std::string_view JsonValue::key() const { return slice(node().key_begin, node().key_size); }

Location JsonValue::where() const {
  std::vector<std::string> parts;
  for (std::uint32_t at = index_; at != 0; at = tree_->nodes_[at].parent) {
    const JsonNode& child = tree_->nodes_[at];
    const JsonNode& parent = tree_->nodes_[child.parent];
    if (parent.kind == Kind::object) {
      parts.push_back(printable(slice(child.key_begin, child.key_size), 256));
      continue;
    }
    std::uint32_t position = at == index_ ? position_ : unknown_position;
    if (position == unknown_position) {
      position = 0;
      for (auto other = child.parent + 1; other != at; other = tree_->nodes_[other].next) ++position;
    }
    parts.push_back(fmt::format("{}", position));
  }
  std::reverse(parts.begin(), parts.end());
  return {tree_->file_, node().line, fmt::format("{}", fmt::join(parts, "."))};
}

std::string JsonValue::described() const {
  switch (node().kind) {
    case Kind::null: return "null";
    case Kind::flag: return node().number == 1 ? "true" : "false";
    case Kind::integer: return fmt::format("{}", node().number);
    case Kind::other_number: return "a number that is no whole number of 63 bits";
    case Kind::text: return fmt::format("'{}'", printable(slice(node().text_begin, node().text_size)));
    case Kind::list: return node().next == index_ + 1 ? "an empty list" : "a list";
    case Kind::object: return "an object";
  }
  return {};
}

void JsonValue::refuse(std::string_view found, std::string_view allowed) const {
  throw InputError(where(), found, allowed);
}

void JsonValue::refuse(std::string_view form) const { refuse(described(), form); }

std::vector<JsonValue> JsonValue::items(std::size_t most, std::string_view form) const {
  if (!is_list() && !is_object()) refuse(form);
  std::vector<JsonValue> result;
  for (auto child = index_ + 1; child < node().next; child = tree_->nodes_[child].next) {
    if (result.size() >= most) refuse(fmt::format("more than {} items", most), form);
    result.emplace_back(*tree_, child, static_cast<std::uint32_t>(result.size()));
  }
  return result;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  for (auto child = index_ + 1; child < node().next; child = tree_->nodes_[child].next) {
    const JsonValue value(*tree_, child);
    if (value.key() == key) return value;
  }
  return std::nullopt;
}

JsonValue JsonValue::at(std::string_view key) const {
  if (const auto value = find(key)) return *value;
  Location place = where();
  place.key += fmt::format("{}{}", place.key.empty() ? "" : ".", key);
  throw InputError(place, "nothing", fmt::format("a value; the key '{}' is required here", key));
}

void JsonValue::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!is_object()) refuse(fmt::format("an object with keys {}", fmt::join(keys, ", ")));
  for (auto child = index_ + 1; child < node().next; child = tree_->nodes_[child].next) {
    const JsonValue value(*tree_, child);
    if (std::find(keys.begin(), keys.end(), value.key()) != keys.end()) continue;
    throw InputError(value.where(), "an unknown key",
                     fmt::format("{}", fmt::join(closest_first(value.key(), keys), ", ")));
  }
}

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
  if (!is_integer() || node().number < least || node().number > most)
    refuse(fmt::format("a whole number from {} to {}", least, most));
  return node().number;
}

std::vector<std::int64_t> JsonValue::integers(std::size_t count, std::int64_t least,
                                              std::int64_t most) const {
  if (!is_list()) refuse(fmt::format("a list of at most {} whole numbers", count));
  std::vector<std::int64_t> numbers;
  for (auto child = index_ + 1; child < node().next; child = tree_->nodes_[child].next) {
    if (numbers.size() >= count) refuse("a longer list", fmt::format("at most {} whole numbers", count));
    numbers.push_back(JsonValue(*tree_, child).integer(least, most));
  }
  return numbers;
}

bool JsonValue::flag() const {
  if (node().kind != JsonNode::Kind::flag) refuse("true or false");
  return node().number == 1;
}

std::string JsonValue::text(std::string_view form) const {
  if (is_text() && node().text_size == 0) refuse(form);
  return text_or_empty(form);
}

std::string JsonValue::text_or_empty(std::string_view form, std::size_t most) const {
  if (!is_text() || node().text_size > most) refuse(form);
  const std::string_view value = slice(node().text_begin, node().text_size);
  if (first_unprintable(value) != value.size()) refuse(form);
  return std::string(value);
}

}  // namespace isthmus
