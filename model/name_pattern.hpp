#pragma once
// Regular expressions on tensor names, as scenarios give them (refit.bulk: {match: [...]}): ECMAScript,
// sought anywhere in the name (std::regex_search). std::regex backtracks, so an unlucky pattern takes
// exponential time. Therefore the form is restricted: at most 256 characters, 3 repetitions (* + {}) with
// counts below 100, 2 options (?), no back references, no repeated group that itself repeats or has
// alternatives. What remains is polynomial in the length of the name, and enough for names such as those of
// HuggingFace.

#include <optional>
#include <string>
#include <string_view>

namespace isthmus {

inline constexpr std::string_view name_pattern_form =
    "an ECMAScript regular expression on tensor names, such as 'mlp\\.experts' (see docs/scenario.md)";

/// Why `pattern` is not such an expression; nullopt when it is one.
std::optional<std::string> name_pattern_fault(std::string_view pattern);

}  // namespace isthmus
