#pragma once
// Reads the key `step` of a scenario (docs/step.md). A Scenario does not hold it: it says what surrounds the
// refit, which no plan depends on, and only `isthmus step` asks for it.
// Invariant: whatever find_step() raises, reading the scenario itself raises as well. What depends on the
// sides is left to step_times().

#include <filesystem>
#include <optional>
#include <vector>

#include "model/scenario.hpp"
#include "model/step.hpp"
#include "model/yaml.hpp"

namespace isthmus {

StepSpec read_step(const YamlValue& value);
/// Of a scenario file, or its text (`file` names it in messages); nullopt where it has no such key.
std::optional<StepSpec> find_step(const std::filesystem::path& file,
                                  const std::vector<Override>& overrides = {});
std::optional<StepSpec> parse_step(const std::string& text, const std::filesystem::path& file,
                                   const std::vector<Override>& overrides = {});

}  // namespace isthmus
