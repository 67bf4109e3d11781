#pragma once
// The values of a NeMo RL recipe: a YAML file whose `defaults` names the file it refines (a path relative to
// itself, or a list of them), merged key by key: mappings merge, anything else replaces. `${dotted.key}`
// stands for the value at that key. Values that nobody asks for are not judged, so recipes may hold what they
// like. Limits: 16 files in all, 8 steps from one `${...}` to the next.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "model/yaml.hpp"

namespace isthmus {

inline std::string megatron_key(std::string_view key) { return "policy.megatron_cfg." + std::string(key); }
inline std::string generation_key(std::string_view key) { return "policy.generation." + std::string(key); }
inline std::string vllm_key(std::string_view key) { return "policy.generation.vllm_cfg." + std::string(key); }
inline std::string resources_key(std::string_view key) {
  return "policy.generation.colocated.resources." + std::string(key);
}

class RecipeSettings {
 public:
  /// `file` is where `document` was read from.
  RecipeSettings(const YamlDocument& document, const std::filesystem::path& file);

  /// Where a key stands, or its nearest parent; it goes by the key that was asked for.
  Location where(std::string_view key) const;
  bool missing(const std::string& key) const { return !values_.contains(key); }
  /// Missing, or null.
  bool unset(const std::string& key) const;
  bool is_true(const std::string& key) const;
  /// The text of a plain value; nullopt when unset. "a list" and "a mapping" stand for these.
  std::optional<std::string> text(const std::string& key) const;
  /// The plain items of a list, in order; none for anything else.
  std::vector<std::string> items(const std::string& key) const;
  /// A whole number from 1; nullopt when unset. Raises InputError for anything else.
  std::optional<int> number(const std::string& key) const;
  /// The same for a parallel size: 1 when unset.
  int size(const std::string& key) const { return number(key).value_or(1); }

 private:
  struct Value {
    YamlNode::Kind kind = YamlNode::Kind::nothing;
    std::string text;
    Location where;
    std::vector<std::string> items;
  };

  void read_defaults(const YamlDocument& document, const std::filesystem::path& file);
  void merge(const YamlDocument& document, const YamlNode& mapping, const std::string& prefix);
  const Value* resolve(const std::string& key) const;

  std::map<std::string, Value> values_;
  std::string file_;
  int files_ = 0;
};

}  // namespace isthmus
