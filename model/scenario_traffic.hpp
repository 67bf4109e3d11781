#pragma once
// `traffic:` of a scenario, read and written. Internal to the reader and the writer of scenarios; the keys
// are explained in docs/scenario.md. Values of `baseline` are kept as YAML text of one line, for they may be
// of any key. Invariant: reading what traffic_yaml writes gives an equal TrafficSpec.

#include <string>

#include "model/traffic.hpp"
#include "model/yaml.hpp"

namespace isthmus {

/// Raises InputError for unknown keys, values of the wrong form and keys that do not go together.
TrafficSpec read_traffic(const YamlValue& value);

/// "traffic:\n  pair: {from: 0, to: 8}\n ...".
std::string traffic_yaml(const TrafficSpec& spec);

}  // namespace isthmus
