#pragma once
// Random topologies without topology_faults: blocks of several types with direct NVLink, NVSwitch chips or
// none, PCIe trees or C2C, ports that share cards, unknown rates; networks of up to three tiers and a
// gateway, wired by rail or at random, with unplugged NICs; settings of every kind. They shrink towards one
// host without anything. A failure prints the topology as JSON.

#include <ostream>

#include <rapidcheck.h>

#include "model/topology/topology.hpp"

namespace isthmus {

/// One type of block: at most 3 hosts of 8 GPUs and 8 ports.
rc::Gen<Block> arbitrary_block();
/// At most 3 types, 6 blocks and 9 switches.
rc::Gen<Topology> arbitrary_topology();
/// A valid topology of `hosts` DGX-like hosts: `gpus` GPUs over two NVSwitch chips each, as many NICs, a PCIe
/// switch per pair, one leaf per rail, `spines` spines. Every rate is known and there is nothing to report.
Topology healthy_topology(std::uint32_t hosts = 4, std::uint32_t gpus = 4, std::uint32_t spines = 2);

/// Both ways of a wire.
void join(Block& block, std::uint32_t a, std::uint32_t b, WireKind kind, std::uint32_t wires, Bandwidth rate);

/// RapidCheck prints counter-examples through this.
void showValue(const Topology& topology, std::ostream& stream);

}  // namespace isthmus
