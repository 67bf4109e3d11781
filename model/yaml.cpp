#include "model/yaml.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_depth = 32;
constexpr std::size_t max_values = std::size_t{1} << 18;

/// Builds the tree from yaml-cpp's events, which unlike its Node keep repeated keys, marks and aliases
/// visible.
class TreeBuilder final : public YAML::EventHandler {
 public:
  /// `where` names the source; its line is 0 for an override, whose lines mean nothing to the user.
  TreeBuilder(Location where, std::uint32_t origin) : where_(std::move(where)), origin_(origin) {}

  YamlNode take() { return std::move(root_); }
  bool has_document() const { return documents_ > 0; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document", "one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_extras(mark, "", anchor);
    if (awaits_key()) refuse(mark, "no key", "a key");
    add(make(YamlNode::Kind::nothing, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_extras(mark, "", 1); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_extras(mark, tag, anchor);
    if (awaits_key()) {
      open_.back().key = text;
      open_.back().key_line = line(mark);
      open_.back().has_key = true;
      return;
    }
    YamlNode node = make(YamlNode::Kind::scalar, mark);
    node.quoted = tag == "!";
    node.text = text;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::mapping, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    refuse_repeated_keys();
    close();
  }

 private:
  struct Open {
    YamlNode node;
    std::string key;
    int key_line = 0;
    bool has_key = false;
  };

  int line(const YAML::Mark& mark) const { return where_.line == 0 ? 0 : mark.line + 1; }

  bool awaits_key() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::mapping && !open_.back().has_key;
  }

  /// The dotted key of what is being read.
  std::string path() const {
    std::string result = where_.key;
    for (const Open& level : open_) {
      const bool list = level.node.kind == YamlNode::Kind::list;
      if (!list && !level.has_key) continue;
      if (!result.empty()) result += '.';
      result += list ? fmt::format("{}", level.node.children.size()) : printable(level.key);
    }
    return result;
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view found, std::string_view allowed) const {
    throw InputError({where_.file, line(mark), path()}, found, allowed);
  }

  void refuse_extras(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "an anchor or alias", "every value written out");
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, fmt::format("the tag '{}'", printable(tag)), "values without tags");
    }
  }

  void refuse_repeated_keys() const {
    std::vector<const YamlNode*> sorted;
    for (const YamlNode& child : open_.back().node.children) sorted.push_back(&child);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const YamlNode* a, const YamlNode* b) { return a->key < b->key; });
    const auto repeated = std::adjacent_find(sorted.begin(), sorted.end(),
                                             [](const auto* a, const auto* b) { return a->key == b->key; });
    if (repeated == sorted.end()) return;
    const YamlNode& second = **std::next(repeated);
    std::string key = path();
    key += (key.empty() ? "" : ".") + printable(second.key);
    throw InputError({where_.file, second.key_line, key}, "the key a second time", "each key once");
  }

  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) {
    if (++values_ > max_values) {
      refuse(mark, fmt::format("more than {} values", max_values),
             "fewer values; ranges such as 0-511 count once");
    }
    YamlNode node;
    node.kind = kind;
    node.origin = origin_;
    node.line = line(mark);
    return node;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_extras(mark, tag, anchor);
    if (awaits_key())
      refuse(mark, "a list or mapping as key (or a bracket that is not closed)", "a text as key");
    if (open_.size() >= max_depth) refuse(mark, "deep nesting", fmt::format("at most {} levels", max_depth));
    open_.push_back({make(kind, mark), {}, 0, false});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::mapping) {
      node.key = std::move(parent.key);
      node.key_line = parent.key_line;
      if (node.kind != YamlNode::Kind::scalar) node.line = parent.key_line;
      parent.has_key = false;
    }
    parent.node.children.push_back(std::move(node));
  }

  Location where_;
  std::uint32_t origin_;
  YamlNode root_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
  int documents_ = 0;
};

void refuse_bad_text(std::string_view text, const Location& where) {
  if (text.size() > max_text_bytes) throw InputError(where, "more than 4 MiB", "at most 4 MiB");
  const std::size_t bad = first_unprintable(text, "\t\n\r");
  if (bad == text.size()) return;
  Location place = where;
  if (place.line > 0)
    place.line +=
        static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n'));
  throw InputError(place, "bytes that are not text", "YAML in UTF-8 without control characters");
}

/// The tree of `text`; nullopt when it holds no document. `where.line` is 1 for a file, 0 for an override.
std::optional<YamlNode> parse(std::string_view text, const Location& where, std::uint32_t origin) {
  refuse_bad_text(text, where);
  // yaml-cpp takes the end of the file for a closing quote when blanks stand before it.
  std::istringstream stream{std::string(text.substr(0, text.find_last_not_of(" \t\r\n") + 1))};
  TreeBuilder builder(where, origin);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const int line = where.line == 0 || error.mark.is_null() ? 0 : error.mark.line + 1;
    throw InputError({where.file, line, where.key},
                     fmt::format("text that is not YAML ({})", printable(error.msg)), "YAML");
  }
  return builder.has_document() ? std::optional(builder.take()) : std::nullopt;
}

std::vector<std::string> split(const std::string& key) {
  std::vector<std::string> segments{""};
  for (const char c : key) {
    if (c == '.') {
      segments.emplace_back();
    } else {
      segments.back() += c;
    }
  }
  return segments;
}

/// The child that an override's next segment names; added when missing from a mapping, but not from a list.
YamlNode& descend(YamlNode& parent, const std::string& segment, std::uint32_t origin, const Location& where) {
  if (parent.kind == YamlNode::Kind::nothing) {
    parent.kind = YamlNode::Kind::mapping;
    parent.origin = origin;
  }
  if (parent.kind == YamlNode::Kind::scalar) {
    throw InputError(where, fmt::format("'{}' below a plain value", printable(segment)),
                     "a key below a mapping or list");
  }
  if (parent.kind == YamlNode::Kind::mapping) {
    for (YamlNode& child : parent.children) {
      if (child.key == segment) return child;
    }
    YamlNode& added = parent.children.emplace_back();
    added.key = segment;
    added.origin = origin;
    return added;
  }
  std::size_t index = 0;
  const char* end = segment.data() + segment.size();
  const auto [stop, error] = std::from_chars(segment.data(), end, index);
  if (error != std::errc{} || stop != end || index >= parent.children.size()) {
    throw InputError(where,
                     fmt::format("'{}' in a list of {} items", printable(segment), parent.children.size()),
                     "the number of an item, from 0");
  }
  return parent.children[index];
}

void collect_locations(const YamlNode& node, const std::string& key, const std::vector<std::string>& origins,
                       std::map<std::string, Location>& found) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const YamlNode& child = node.children[i];
    const bool in_list = node.kind == YamlNode::Kind::list;
    if (in_list && child.kind == YamlNode::Kind::scalar) continue;
    const std::string child_key =
        fmt::format("{}{}{}", key, key.empty() ? "" : ".", in_list ? fmt::format("{}", i) : child.key);
    found[child_key] = {origins[child.origin], child.line, child_key};
    collect_locations(child, child_key, origins, found);
  }
}

}  // namespace

YamlDocument::YamlDocument(std::string_view text, std::string_view file) : origins_{printable(file, 4096)} {
  const Location where{origins_[0], 1, {}};
  std::optional<YamlNode> root = parse(text, where, 0);
  const Location whole_file{origins_[0], 0, {}};
  if (!root || root->kind == YamlNode::Kind::nothing)
    throw InputError(whole_file, "an empty file", "a mapping of keys");
  root_ = std::move(*root);
  if (root_.kind != YamlNode::Kind::mapping) {
    throw InputError({origins_[0], root_.line, {}}, "no mapping", "a mapping of keys");
  }
}

void YamlDocument::set(const std::string& key, const std::string& value) {
  const auto origin = static_cast<std::uint32_t>(origins_.size());
  origins_.push_back(printable(fmt::format("--set {}={}", key, value), 160));
  const Location where{origins_.back(), 0, printable(key)};
  const std::vector<std::string> segments = split(key);
  const bool has_empty = std::find(segments.begin(), segments.end(), "") != segments.end();
  if (has_empty || segments.size() > max_depth || first_unprintable(key, "") != key.size()) {
    throw InputError(where, "no dotted key",
                     "--set KEY=VALUE with a key such as refit.streams or tensors.0.source.first_rank");
  }
  YamlNode* node = &root_;
  for (const std::string& segment : segments) node = &descend(*node, segment, origin, where);
  YamlNode replacement = parse(value, where, origin).value_or(YamlNode{});
  replacement.key = std::move(node->key);
  replacement.origin = origin;
  *node = std::move(replacement);
}

std::map<std::string, Location> YamlDocument::locations() const {
  std::map<std::string, Location> found;
  collect_locations(root_, "", origins_, found);
  return found;
}

}  // namespace isthmus
