#pragma once
// What differs between two topologies, in plain words: counts, missing parts, wires, rates, cables, settings.
// Blocks are aligned by position, vertices by kind, host and index, switches by tier and name (by position in
// a tier where not one name is common to both).
// Invariant: empty exactly when the two are equal but for names (of the whole, of block types, of switches
// aligned by position), labels, attributes, evidence, splits of wires into records, and the order in which
// vertices other than GPUs and NICs, wires, switches and cables are listed. Pairs of types are compared once,
// however many blocks are of them.

#include <cstddef>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

/// Codes: count, known, routing, vertex, order, wire, rate, setting, port, switch, cable, plug. At most
/// `most_per_code` texts of one code, then one that counts the rest.
std::vector<Finding> topology_difference(const Topology& first, const Topology& second,
                                         std::size_t most_per_code = 16);

}  // namespace isthmus
