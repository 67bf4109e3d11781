#include "cli/scenario_input.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "model/input.hpp"
#include "model/text.hpp"
#include "model/validation.hpp"

namespace isthmus::cli {

std::vector<Override> parse_overrides(const std::vector<std::string>& settings) {
  std::vector<Override> overrides;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError({"--set", 0, ""}, fmt::format("'{}'", printable(setting)),
                       "KEY=VALUE, such as refit.streams=16");
    }
    overrides.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return overrides;
}

AssumedScenario read_with_assumptions(const std::string& file, const std::vector<std::string>& overrides,
                                      const std::optional<std::string>& model) {
  Input input = read_input(file, parse_overrides(overrides), model);
  if (input.kind == InputKind::nemo_rl_recipe)
    raise_all(isthmus::validate(input, RuleSet::nemo_rl).violations);
  if (input.kind == InputKind::m2n_config) raise_all(isthmus::validate(input).violations);
  require_scenario(input);
  for (const std::string& line : input.assumptions) fmt::print(stderr, "isthmus: assumed: {}\n", line);
  return {std::move(input.scenario), std::move(input.assumptions)};
}

Scenario read_any(const std::string& file, const std::vector<std::string>& overrides,
                  const std::optional<std::string>& model) {
  return read_with_assumptions(file, overrides, model).scenario;
}

}  // namespace isthmus::cli
