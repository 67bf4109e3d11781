#pragma once
// What a user should look at in a topology: what is broken, badly wired or not said. None of it is a fault in
// the sense of topology_faults: such machines exist and can be planned for. Codes: docs/topology.md.
// Rule for "unlike its peers": a value that at least three quarters of three or more peers share (for counts
// of wires: more than half) is taken for right, and whatever differs is reported.
// Invariant: a pure function of a topology without topology_faults; the order of vertices inside a block
// changes no text, only their order. At most `most_per_code` texts of one code, then one that counts the
// rest. A type of blocks is judged once and named by its first block.

#include <cstddef>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

std::vector<Finding> topology_findings(const Topology& topology, std::size_t most_per_code = 8);

}  // namespace isthmus
