#include "tests/support/json_schema.hpp"

#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"

namespace isthmus::test {
namespace {

using Json = nlohmann::json;

class SchemaJudge {
 public:
  explicit SchemaJudge(const Json& root) : root_(root) {}

  std::string fault(const Json& schema, const Json& value, const std::string& place) const {
    for (const auto& [word, rule] : schema.items()) {
      const std::string found = word_fault(word, rule, schema, value, place);
      if (!found.empty()) return found;
    }
    return {};
  }

 private:
  std::string word_fault(const std::string& word, const Json& rule, const Json& schema, const Json& value,
                         const std::string& place) const;
  std::string parts_fault(const Json& schema, const Json& value, const std::string& place) const;
  bool plain_holds(const std::string& word, const Json& rule, const Json& value) const;

  std::size_t matches(const Json& schemas, const Json& value) const {
    return static_cast<std::size_t>(std::count_if(
        schemas.begin(), schemas.end(), [&](const Json& each) { return fault(each, value, "").empty(); }));
  }

  const Json& root_;
};

bool has_type(const std::string& type, const Json& value) {
  if (type == "integer") return value.is_number_integer();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "null") return value.is_null();
  ISTHMUS_ASSERT(type == "object", "type {}", type);
  return value.is_object();
}

bool has_all(const Json& keys, const Json& value) {
  return std::all_of(keys.begin(), keys.end(), [&](const Json& key) { return value.contains(key); });
}

bool SchemaJudge::plain_holds(const std::string& word, const Json& rule, const Json& value) const {
  if (word == "type") return has_type(rule, value);
  if (word == "const") return value == rule;
  if (word == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
  if (word == "minimum") return !value.is_number() || value >= rule;
  if (word == "maximum") return !value.is_number() || value <= rule;
  if (word == "minItems") return !value.is_array() || value.size() >= rule;
  if (word == "maxItems") return !value.is_array() || value.size() <= rule;
  if (word == "maxProperties") return !value.is_object() || value.size() <= rule;
  if (word == "minLength") return !value.is_string() || value.get<std::string>().size() >= rule;
  if (word == "maxLength") return !value.is_string() || value.get<std::string>().size() <= rule;
  if (word == "pattern") {
    return !value.is_string() ||
           std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()));
  }
  if (word == "required") return !value.is_object() || has_all(rule, value);
  if (word == "anyOf") return matches(rule, value) > 0;
  if (word == "oneOf") return matches(rule, value) == 1;
  if (word == "not") return !fault(rule, value, "").empty();
  ISTHMUS_ASSERT(word == "dependentRequired", "unknown word {}", word);
  for (const auto& [key, others] : rule.items()) {
    if (value.contains(key) && !has_all(others, value)) return false;
  }
  return true;
}

/// Properties and items, and that there are no others.
std::string SchemaJudge::parts_fault(const Json& schema, const Json& value, const std::string& place) const {
  const auto inside = [&](const std::string& part) { return place.empty() ? part : place + "." + part; };
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string found = fault(schema["items"], value[i], inside(std::to_string(i)));
      if (!found.empty()) return found;
    }
  }
  if (!value.is_object()) return {};
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [key, part] : value.items()) {
    if (properties.contains(key)) {
      const std::string found = fault(properties[key], part, inside(key));
      if (!found.empty()) return found;
    } else if (const auto others = schema.find("additionalProperties"); others != schema.end()) {
      if (*others == false) return inside(key) + ": additionalProperties";
      const std::string found = fault(*others, part, inside(key));
      if (!found.empty()) return found;
    }
  }
  return {};
}

std::string SchemaJudge::word_fault(const std::string& word, const Json& rule, const Json& schema,
                                    const Json& value, const std::string& place) const {
  if (word == "$schema" || word == "title" || word == "description" || word == "$defs") return {};
  if (word == "additionalProperties" || word == "items") return {};  // with properties, below
  if (word == "$ref") {
    const std::string name = rule.get<std::string>();
    ISTHMUS_ASSERT(name.starts_with("#/$defs/"), "{}", name);
    return fault(root_["$defs"].at(name.substr(8)), value, place);
  }
  if (word == "type") {
    if (!plain_holds(word, rule, value)) return place + ": type";
    return parts_fault(schema, value, place);
  }
  if (word == "properties") return {};
  return plain_holds(word, rule, value) ? std::string() : place + ": " + word;
}

}  // namespace

std::string schema_fault(const Json& schema, const Json& value) {
  return SchemaJudge(schema).fault(schema, value, "");
}

}  // namespace isthmus::test
