#pragma once
// JSON that may be large (hundreds of thousands of small objects), kept flat, with the line of every value,
// so that a reader's messages name file, line and dotted key. Values lie in the order of the text; those
// below one stand right behind it, up to its `next`.
// Invariant: a JsonTree is one complete JSON value without repeated keys, at most 64 levels deep, with at
// most max_json_values values (48 bytes each) of at most max_json_bytes of text; anything else is an
// InputError with file and line.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"

namespace isthmus {

inline constexpr std::size_t max_json_bytes = std::size_t{256} << 20;
inline constexpr std::size_t max_json_values = std::size_t{1} << 24;

struct JsonNode {
  enum class Kind : std::uint8_t { null, flag, integer, other_number, text, list, object };
  Kind kind = Kind::null;
  int line = 0;  // where the value begins
  std::uint32_t parent = 0, next = 0;
  std::uint32_t key_begin = 0, key_size = 0;    // in the parent object
  std::uint32_t text_begin = 0, text_size = 0;  // of a text
  std::int64_t number = 0;                      // of an integer; 1 and 0 for true and false
};

class JsonValue;

class JsonTree {
 public:
  /// `file` names the text in messages.
  JsonTree(std::string_view text, const std::string& file);
  JsonValue root() const;

 private:
  friend class JsonValue;
  std::string file_;
  std::vector<JsonNode> nodes_;
  std::string characters_;  // of all keys and texts
};

/// A place in a tree, with readers that raise InputError when the value is not what it must be. Valid while
/// the tree lives.
class JsonValue {
 public:
  static constexpr std::uint32_t unknown_position = ~std::uint32_t{0};
  JsonValue(const JsonTree& tree, std::uint32_t index, std::uint32_t position = unknown_position)
      : tree_(&tree), index_(index), position_(position) {}

  Location where() const;
  int line() const { return node().line; }
  bool is_list() const { return node().kind == JsonNode::Kind::list; }
  bool is_object() const { return node().kind == JsonNode::Kind::object; }
  bool is_text() const { return node().kind == JsonNode::Kind::text; }
  bool is_null() const { return node().kind == JsonNode::Kind::null; }
  bool is_integer() const { return node().kind == JsonNode::Kind::integer; }
  /// The key it stands under; empty in a list and at the root.
  std::string_view key() const;

  /// The values of a list or object, in order; raises when this is neither, or has more than `most`.
  std::vector<JsonValue> items(std::size_t most, std::string_view form) const;
  std::optional<JsonValue> find(std::string_view key) const;
  JsonValue at(std::string_view key) const;  // raises when missing
  /// Raises unless this is an object with no other keys than these; names the closest ones first.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// A list of at most `count` whole numbers.
  std::vector<std::int64_t> integers(std::size_t count, std::int64_t least, std::int64_t most) const;
  /// A text of one line, not empty, of at most 4096 bytes; `form` says what it must be.
  std::string text(std::string_view form) const;
  /// The same, but it may be empty, and of at most `most` bytes.
  std::string text_or_empty(std::string_view form, std::size_t most = 4096) const;
  bool flag() const;

  [[noreturn]] void refuse(std::string_view form) const;  // "found <this value>, allowed <form>"
  [[noreturn]] void refuse(std::string_view found, std::string_view allowed) const;

 private:
  const JsonNode& node() const { return tree_->nodes_[index_]; }
  std::string_view slice(std::uint32_t begin, std::uint32_t size) const {
    return std::string_view(tree_->characters_).substr(begin, size);
  }
  std::string described() const;

  const JsonTree* tree_;
  std::uint32_t index_;
  std::uint32_t position_;  // in the parent, where that is known
};

}  // namespace isthmus
