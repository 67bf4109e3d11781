#pragma once
// Reads and writes the keys `background`, `faults` and `failed_steps` of a scenario (docs/faults.md).
// Invariant: what is written reads back to the same value. What only the fabric can judge (numbers, names of
// links) is left to disturbance_faults().

#include <string>

#include "model/disturbance.hpp"
#include "model/yaml.hpp"

namespace isthmus {

/// Of the root of a scenario; empty where it has none of the keys.
Disturbances read_disturbances(const YamlValue& root);
/// The lines of these keys; none for what is as usual.
std::string disturbances_yaml(const Disturbances& disturbances);

}  // namespace isthmus
