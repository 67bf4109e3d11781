#pragma once
// Every violation of the rules that a scenario, recipe or configuration must keep, at once; notes are what a
// reader may want to know and no rule forbids. Three sets of rules (docs/validate.md):
//   general  what resolving a scenario requires; the same functions judge here and raise there
//   nemo_rl  also what NeMo RL's reshard refit supports (of recipes: its 19 rules)
//   m2n      also NCCL M2N's published limits, on the resolved layouts
// Invariant: a valid input resolves, and one that does not resolve has a violation. Files that cannot be read
// at all raise InputError before.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/input.hpp"

namespace isthmus {

enum class RuleSet : std::uint8_t { general, nemo_rl, m2n };
/// "nemo-rl" and "m2n".
std::optional<RuleSet> parse_rule_set(std::string_view name);

struct Validation {
  std::vector<InputFault> violations;
  std::vector<std::string> notes;
  bool valid() const { return violations.empty(); }
};

Validation validate(const Input& input, RuleSet rules = RuleSet::general);

}  // namespace isthmus
