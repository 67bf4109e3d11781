#pragma once
// The blocks that presets are made of, and the tools to build one: vertices host by host, wires with their
// way back, a table of GPUs and NICs. HGX hosts: 8 GPUs on NVSwitch chips, each GPU with its NIC below one
// PCIe switch, four of those per socket. NVL72 racks: trays of 2 Grace and 4 GPUs, 18 chips with one wire
// from every GPU, NICs below Grace.
// Invariant: GPU i of a preset's block is its vertex i; NIC i has the rail of GPU i.
// Sources of all numbers: docs/fabric.md, section "Numbers and where they come from".

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "model/topology/topology.hpp"

namespace isthmus {

/// A number with what it rests on.
struct Rate {
  Bandwidth value;
  Evidence evidence = Evidence::vendor;
};

struct HgxDesign {
  std::string_view name;
  std::span<const std::uint32_t> wires_to_chip;
  Evidence chips = Evidence::published;  // of the spread over the chips
  Rate nvlink, pcie, nic, socket;        // nvlink: per GPU; all per direction
};
Block hgx_host(const HgxDesign& design);

struct RackDesign {
  std::string_view name;
  Rate nvlink, c2c, slot, nic, socket;
};
Block nvl72_rack(const RackDesign& design, std::uint32_t trays);

/// Appends `per_host` vertices for every host of the block, or for the block as a whole; returns the first.
std::uint32_t add_vertices(Block& block, VertexKind kind, std::uint32_t per_host, bool shared = false);
/// Adds a wire record and its way back.
void join(Block& block, std::uint32_t from, std::uint32_t to, WireKind kind, std::uint32_t wires, Rate rate);
/// Every GPU to every chip; the parts of its port's rate add up to the rate exactly.
void join_chips(Block& block, std::uint32_t first_chip, std::span<const std::uint32_t> wires_to_chip,
                Rate port);

}  // namespace isthmus
