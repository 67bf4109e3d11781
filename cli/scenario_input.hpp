#pragma once
// What the commands on scenarios share: the file argument with --set and --model, read to a scenario.
// Invariant: assumptions about what a foreign file leaves open are printed to standard error, one a line.
// Raises InputError for anything that is no refit.

#include <optional>
#include <string>
#include <vector>

#include "model/scenario.hpp"

namespace isthmus::cli {

/// `--set` arguments: KEY=VALUE.
std::vector<Override> parse_overrides(const std::vector<std::string>& settings);

struct AssumedScenario {
  Scenario scenario;
  std::vector<std::string> assumptions;  // one line each, as they were printed
};

/// The scenario that a file stands for. A foreign file that is not supported is refused with every reason at
/// once.
AssumedScenario read_with_assumptions(const std::string& file, const std::vector<std::string>& overrides,
                                      const std::optional<std::string>& model);
/// The same without them.
Scenario read_any(const std::string& file, const std::vector<std::string>& overrides,
                  const std::optional<std::string>& model);

}  // namespace isthmus::cli
