#pragma once
// The parts that the network above the NICs consists of: each leaf, each pod of spines with its leaves, and
// so on upwards, up to the several fabrics that a stated link joins; a set of switches that hang together
// below a tier. Behind a part stand the GPUs whose own NICs are plugged into it.
// Invariant: whatever passes from a switch outside a part to one inside crosses one of `in`, and back one of
// `out`. Parts without cables across, without GPUs, or with all of them are left out.

#include <cstdint>
#include <string>
#include <vector>

#include "model/fabric.hpp"

namespace isthmus {

struct NetworkPart {
  std::string name;                    // "leaf 3 of unit 1 and 4 more switches"
  VertexKind tier = VertexKind::leaf;  // the highest of its switches
  std::vector<std::uint32_t> gpus;     // ascending
  std::vector<LinkId> in, out;         // distinct
};

std::vector<NetworkPart> network_parts(const Fabric& fabric);

}  // namespace isthmus
