#pragma once
// Random fabrics and edits for properties: every preset, network, routing and part that a specification can
// name, racks in partial use, and every kind of edit. They shrink towards one host of the first preset, and
// a failure prints the fabric as it would stand in a scenario.
// Invariant: build_topology accepts every specification; an edit names what the machine has, but may still
// be refused (two edits may remove the same thing).

#include <ostream>
#include <vector>

#include <rapidcheck.h>

#include "model/fabric.hpp"
#include "model/fabric_spec.hpp"
#include "tests/support/topology_generator.hpp"

namespace isthmus {

/// One preset behind one network, without edits.
rc::Gen<FabricSpec> arbitrary_part(int most_hosts);
/// One part, or up to three joined; random routing; no edits.
rc::Gen<FabricSpec> arbitrary_fabric_spec(int most_hosts);
/// Something to break on one or two of these hosts.
rc::Gen<FabricEdit> arbitrary_host_edit(const std::vector<int>& hosts);
/// Any edit of this topology, of hosts or of the network.
rc::Gen<FabricEdit> arbitrary_edit(const Topology& topology);
/// A topology with up to `most_edits` edits; those that are refused are left out.
rc::Gen<Topology> arbitrary_topology(int most_hosts, int most_edits);

int host_count(const Topology& topology);
GpuId any_gpu(const Fabric& fabric);

void showValue(const FabricSpec& spec, std::ostream& stream);
void showValue(const FabricEdit& edit, std::ostream& stream);

}  // namespace isthmus
