#pragma once
// Edits of a topology: broken, slow or differently wired parts, and what software was told not to use. An
// edit of some hosts gives their blocks a type of their own; blocks edited alike share it.
// Invariant: vertices, hosts, GPUs and NICs keep their numbers; what is removed loses its wires (a NIC: its
// cable). Rates of bundles shrink in proportion to their wires, rounded down.
// Source of the cases: public incidents and the table of graph edits in docs/what-if.md.

#include <string>

#include "model/fabric_spec.hpp"

namespace isthmus {

/// Raises InputError at `key` (+ ".gpus", ...) when the topology lacks what the edit names, and when the
/// edit says too much or too little; the topology is then unchanged.
void apply_edit(const FabricEdit& edit, const std::string& key, Topology& topology);

}  // namespace isthmus
