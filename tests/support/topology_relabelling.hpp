#pragma once
// Topologies that are the same machine written otherwise: vertices of a block and types of blocks in another
// order, other labels and names, wires and cables listed otherwise. Blocks, hosts and switches keep theirs.
// Invariant: what depends on the machine alone must not tell the two apart; the GPUs and NICs of a block are
// renumbered, with everything that names them.

#include <rapidcheck.h>

#include "model/topology/topology.hpp"

namespace isthmus {

rc::Gen<Topology> arbitrary_relabelling(const Topology& topology);

}  // namespace isthmus
