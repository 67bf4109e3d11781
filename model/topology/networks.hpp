#pragma once
// The networks that presets stand below, switch by switch. Consecutive hosts form a group (a unit, a rack)
// with leaves of its own, one per rail; leaves below spines; cores where a spine's 64 ports no longer reach
// every leaf. The rule for other sizes than the published ones stands in docs/fabric.md.
// Equations: up to 64 leaves, L = leaves rounded up to a power of two (and to reserved_leaves), each leaf has
// 64 / L wires to a spine; beyond, 32 leaves form a pod, each has one wire to each spine of its pod, a spine
// has 32 ports up. Oversubscription o leaves floor(up / o) wires up, at least one.
// Sources: vendor tables of DGX SuperPOD H100 and B200; a public listing of a GB200 SuperPOD.

#include <cstdint>
#include <string_view>

#include "model/topology/topology.hpp"

namespace isthmus {

struct NetworkDesign {
  std::string_view group_name = "unit";
  std::uint32_t hosts_per_group = 32, leaves_per_group = 8;
  std::uint32_t up = 32;              // wires up from a leaf
  std::uint32_t reserved_leaves = 8;  // the fewest leaves that the spines are cabled for
  Bandwidth wire;                     // per direction
  double oversubscription = 1;
};

/// A network, and for each NIC (host after host, `rails` of them) the switch that it is cabled to.
struct Cabling {
  Network network;
  std::vector<std::uint32_t> switch_of_nic;
};

Cabling superpod_network(const NetworkDesign& design, std::uint32_t hosts, std::uint32_t rails);
/// A single non-blocking switch.
Cabling one_switch(std::uint32_t hosts, std::uint32_t rails);
/// One switch per rail, nothing between the rails.
Cabling rail_switches(std::uint32_t hosts, std::uint32_t rails);

}  // namespace isthmus
