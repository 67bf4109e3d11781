#pragma once
// What a JSON schema says against a value, for tests that hold the project's documents to their schemas. It
// knows the words that these schemas use (types, bounds, patterns, required, dependentRequired, closed
// objects, $ref into $defs, anyOf, oneOf, not) and fails on any other, so no rule is passed over.
// Invariant: an empty answer means that the value is valid.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace isthmus::test {

/// The first place at fault with the word of the schema that it offends: "patterns.0.steps: maxItems".
std::string schema_fault(const nlohmann::json& schema, const nlohmann::json& value);

}  // namespace isthmus::test
