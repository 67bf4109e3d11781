#pragma once
// The result of `isthmus validate`, as text for people or as JSON (docs/json.md). One line per violation:
// file:line: key: what was found; what is allowed; the smallest change. Then one line per note.
// Each document ends with a newline; the JSON says everything that the text says.

#include <string>
#include <string_view>

#include "model/validation.hpp"

namespace isthmus::report {

/// `name` is what was validated.
std::string validation_document(std::string_view name, const Validation& validation, bool json);

}  // namespace isthmus::report
