#pragma once
// A topology as JSON (docs/topology-json.md, docs/topology.schema.json): Isthmus's own form, which carries
// everything that a Topology holds, one vertex or wire per line. Rates are whole bytes per second.
// Invariant: for every topology without topology_faults, topology_from_json(to_json(t)) == t; to_json gives
// equal texts for equal values; runs of equal blocks and of equally cabled hosts are written once.

#include <string>
#include <string_view>

#include "model/topology/topology.hpp"

namespace isthmus {

/// Requires a topology without topology_faults.
std::string to_json(const Topology& topology);

/// `file` names the text in messages. Raises InputError with file, line and key for anything that is not such
/// a text, for the first of topology_faults too.
Topology topology_from_json(std::string_view text, const std::string& file);

}  // namespace isthmus
