#pragma once
// Presets: which block and which network a name stands for. A preset is a host or rack design and the design
// of the network that its vendor builds above it; `-superpod` comes with that network, an HGX name alone with
// one non-blocking switch. Internal to build_topology (model/fabric_spec.hpp).
// Every number in presets.cpp stands in docs/fabric.md with its source.

#include <cstdint>
#include <span>
#include <string_view>

#include "model/fabric_spec.hpp"
#include "model/topology/blocks.hpp"
#include "model/topology/networks.hpp"

namespace isthmus {

struct PresetDesign {
  FabricPreset preset;
  const HgxDesign* host = nullptr;  // one of the two
  const RackDesign* rack = nullptr;
  NetworkDesign network;
  NetworkKind kind = NetworkKind::one_switch;
};

std::span<const PresetDesign> preset_designs();

}  // namespace isthmus
