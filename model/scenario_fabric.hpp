#pragma once
// `fabric:` of a scenario, read and written. Internal to the reader and the writer of scenarios; the keys are
// explained in docs/fabric.md.
// Invariant: reading what fabric_yaml writes gives an equal FabricSpec.

#include <string>

#include "model/fabric_spec.hpp"
#include "model/yaml.hpp"

namespace isthmus {

/// Raises InputError for unknown keys, values of the wrong form and keys that do not go together.
FabricSpec read_fabric(const YamlValue& value);

/// "{preset: dgx-h100, hosts: 4}": one line.
std::string fabric_yaml(const FabricSpec& spec);

}  // namespace isthmus
