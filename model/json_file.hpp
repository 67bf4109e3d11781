#pragma once
// Reading JSON that people hand in: configurations, manifests, checkpoint headers and indexes.
// Invariant: what comes back is one complete JSON value without repeated keys and without deep nesting;
// anything else is an InputError that names the file and, for syntax, the line.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace isthmus {

/// The whole file. Raises InputError when it is missing, a directory, unreadable or larger than `max_bytes`.
std::string read_text(const std::filesystem::path& file, std::size_t max_bytes);

/// Parses `text`; `file` names it in messages.
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// A JSON value in a message: short, on one line.
std::string describe(const nlohmann::json& value);

}  // namespace isthmus
