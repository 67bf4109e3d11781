#pragma once
// What `isthmus topology show --probe` prints of the machine at hand: its processors, NUMA nodes, GPUs and
// NICs by name and place, and then what `topology show` prints of any machine (report/topology.hpp); in JSON
// the same keys, and `machine` (docs/json.md).
// Invariant: the document ends with a newline; null stands for what the machine does not say.

#include <string>

#include "hw/live_machine.hpp"

namespace isthmus::report {

std::string machine_document(const hw::LiveMachine& machine, bool json);

}  // namespace isthmus::report
