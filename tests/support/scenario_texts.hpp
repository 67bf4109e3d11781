#pragma once
// One small scenario of each form as text, to be damaged by tests, and what the reader says about a text.
// Line numbers in expected messages are those of these texts, so lines must not move; tests replace parts of
// them in place.

#include <string>
#include <string_view>
#include <vector>

#include "model/scenario.hpp"

namespace isthmus {

extern const std::string whole_refit;  // 14 lines: model, fabric, train, generate, ranks, refit, published
extern const std::string bare_tensor;  // 4 lines: tensor, source, target, fabric

/// The scenario in a text that is called s.yaml.
Scenario parsed(const std::string& text, const std::vector<Override>& overrides = {});
/// The message of the fault in a text; empty when there is none. What is no InputError passes through.
std::string fault_of(const std::string& text, const std::vector<Override>& overrides = {});
/// `text` with the first `part` replaced; the part must be there.
std::string replaced(std::string text, std::string_view part, std::string_view by);

}  // namespace isthmus
