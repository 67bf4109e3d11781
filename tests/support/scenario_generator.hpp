#pragma once
// Random scenarios of both forms for properties: every key that the file form has, with valid values. They
// shrink towards one tensor of one element on one GPU. A failure prints the scenario as YAML that can be
// pasted into scenarios/cases/.

#include <ostream>

#include <rapidcheck.h>

#include "model/scenario.hpp"

namespace isthmus {

/// A layout of `shape` with 1 to 4 mesh axes; under chunk rule even only when the shape allows it.
rc::Gen<Layout> arbitrary_layout(const std::vector<std::int64_t>& shape, Dtype dtype);
/// A tensor with two layouts.
rc::Gen<TensorSpec> arbitrary_tensor(const std::string& name);
/// A scenario that parse_scenario accepts; whether resolve() does is not considered.
rc::Gen<Scenario> arbitrary_scenario();

/// RapidCheck prints counter-examples through this.
void showValue(const Scenario& scenario, std::ostream& stream);

}  // namespace isthmus
