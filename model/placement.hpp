#pragma once
// Which GPU runs which rank of a whole refit: each side's ranks fill its hosts one after the other, training
// ranks first. Hosts come from the scenario (ranks.train.hosts, ranks.generate.hosts) or follow each other.
// With `fill: rails` a side takes the first GPU of each of its hosts, then the second, and so on.
// Invariant: placement_faults lists every fault; rank_places raises the first of these.

#include <vector>

#include "model/fabric.hpp"
#include "model/input_fault.hpp"
#include "model/scenario.hpp"

namespace isthmus {

/// ranks.*.hosts: as many hosts as the side's GPUs need, all in the fabric; fabric.hosts: enough of them.
std::vector<InputFault> placement_faults(const Scenario& scenario, const Fabric& fabric);

/// The GPU of each rank.
std::vector<GpuId> rank_places(const Scenario& scenario, const Fabric& fabric);

/// The hosts that both sides use: their ranks share GPUs there.
std::vector<int> shared_hosts(const Scenario& scenario, const Fabric& fabric);

}  // namespace isthmus
