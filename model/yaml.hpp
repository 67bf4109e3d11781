#pragma once
// The reader for this project's own YAML files (scenarios, calibrations), on yaml-cpp's event parser. It
// keeps what good messages need: file, line and dotted key of each value, and lets nothing pass unread:
// unknown keys, repeated keys, several documents, tags, anchors and aliases are faults. Every fault is one
// InputError of one line.
// Invariant: no input costs more than its limits: text of 4 MiB, depth 32, 262,144 values; checked while
// reading. Text is UTF-8 without control characters.
// Overrides (`--set key=value`) change the tree before it is read; a value that came from one names
// `--set key=value` as its place.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"

namespace isthmus {

struct YamlNode {
  enum class Kind : std::uint8_t { nothing, scalar, list, mapping } kind = Kind::nothing;
  bool quoted = false;       // scalars: "5" is text, 5 is a number
  std::uint32_t origin = 0;  // index into the document's origins: 0 is the file, others are overrides
  int line = 0;              // of the value; of its key when the value is a list or a mapping
  int key_line = 0;
  std::string key;   // the key it stands under, in a mapping
  std::string text;  // of a scalar
  std::vector<YamlNode> children;
};

class YamlValue;

class YamlDocument {
 public:
  /// Reads one document whose root is a mapping; `file` names it in messages.
  YamlDocument(std::string_view text, std::string_view file);
  /// One `--set key=value`: replaces or adds the value at a dotted key (a number stands for a list's item).
  void set(const std::string& key, const std::string& value);

  YamlValue root() const;
  /// Where each key stands, by dotted key; items of lists of plain values are left out.
  std::map<std::string, Location> locations() const;

 private:
  friend class YamlValue;
  std::vector<std::string> origins_;
  YamlNode root_;
};

/// A place in a document, with readers that raise InputError when the value is not what it must be. Valid
/// while the document lives and is not changed.
class YamlValue {
 public:
  YamlValue(const YamlDocument& document, const YamlNode& node, std::string key)
      : document_(&document), node_(&node), key_(std::move(key)) {}

  Location where() const;
  const YamlNode& node() const { return *node_; }
  bool is_list() const { return node_->kind == YamlNode::Kind::list; }
  bool is_mapping() const { return node_->kind == YamlNode::Kind::mapping; }

  /// Raises unless this is a mapping with no other keys than these; names the closest ones first.
  void allow_only(std::initializer_list<std::string_view> keys) const;
  void allow_only(const std::vector<std::string_view>& keys) const;
  /// The value at a key of this mapping.
  std::optional<YamlValue> find(std::string_view key) const;
  YamlValue at(std::string_view key) const;  // raises when missing

  /// The items of a list of 1 to `most` items.
  std::vector<YamlValue> items(std::size_t most) const;
  /// A text of one line, not empty; `form` says what it must be.
  std::string text(std::string_view form) const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// A plain decimal number, not negative.
  double number(std::string_view form) const;
  bool flag() const;
  /// Whole numbers in [0, end) without repetition, in order: 5, 0-31, or a list of these: [0-3, 8, 9-11].
  std::vector<std::int64_t> ranges(std::int64_t end) const;

  [[noreturn]] void refuse(std::string_view form) const;  // "found <this value>; allowed: <form>"
  [[noreturn]] void refuse(std::string_view found, std::string_view allowed) const;

 private:
  std::string child_key(std::string_view key) const;
  void append_range(std::int64_t end, std::vector<std::int64_t>& numbers) const;

  const YamlDocument* document_;
  const YamlNode* node_;
  std::string key_;
};

}  // namespace isthmus
