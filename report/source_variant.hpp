#pragma once
// The refit that a scenario stands for if its sources quantise (`refit.quantize_at: source`): the variant
// that policy `balanced-quantized` plans, beside what all others plan. Other bytes travel, so it has a bound
// of its own, and is compared with no other.

#include <optional>
#include <string>

#include "model/refit.hpp"
#include "planner/bound.hpp"

namespace isthmus::report {

struct SourceVariant {
  std::optional<Refit> refit{};
  LowerBound bound{};     // of that refit
  std::string refused{};  // why there is none, such as a training shard that cuts a group
};

/// Whether the engines of the scenario want MXFP8, so that the variant is listed.
bool lists_quantised(const Scenario& scenario);

/// Requires lists_quantised().
SourceVariant source_variant(Scenario scenario);

}  // namespace isthmus::report
