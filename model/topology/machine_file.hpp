#pragma once
// A machine of a scenario that comes from a topology file: what the file leaves open is filled in with the
// rates that the scenario states, and what it states is replaced by them (Evidence::user). Internal to
// build_topology.
// Invariant: after require_known_rates no rate is 0; until then 0 stands for what nobody has said. NVLink
// that a file does not speak of exists only where the scenario states fabric.nvlink_bandwidth: then all GPUs
// of a host stand below one NVSwitch.

#include <filesystem>
#include <string>

#include "model/fabric_spec.hpp"

namespace isthmus {

/// A block of one host without a network, to be multiplied; or a whole machine with its network. Raises
/// InputError as the readers do, and for files that say nothing of GPUs or of several hosts without network.
Topology read_machine(const FabricSpec& spec, const std::string& key, const std::filesystem::path& directory);

/// Raises InputError with the key that would supply the first rate that is missing.
void require_known_rates(const Topology& topology);

}  // namespace isthmus
