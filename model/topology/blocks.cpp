#include "model/topology/blocks.hpp"

#include <algorithm>

namespace isthmus {
namespace {

void add_gpus(Block& block, std::uint32_t per_host) {
  const std::uint32_t first = add_vertices(block, VertexKind::gpu, per_host);
  for (std::uint32_t gpu = 0; gpu < per_host * block.hosts; ++gpu) {
    block.gpus.push_back({first + gpu, 0, true, {}});
  }
}

void add_nics(Block& block, std::uint32_t per_host, Rate rate) {
  const std::uint32_t first = add_vertices(block, VertexKind::nic, per_host);
  for (std::uint32_t nic = 0; nic < per_host * block.hosts; ++nic) {
    block.nics.push_back({first + nic, nic % per_host, nic % per_host, rate.value, rate.evidence});
  }
}

/// A NIC that is faster than the slot is taken to sit in a slot that carries it.
Rate slot_of(Rate slot, Rate nic) {
  return {std::max(slot.value, nic.value), nic.value > slot.value ? Evidence::inferred : slot.evidence};
}

}  // namespace

std::uint32_t add_vertices(Block& block, VertexKind kind, std::uint32_t per_host, bool shared) {
  const auto first = static_cast<std::uint32_t>(block.vertices.size());
  for (std::uint32_t host = 0; host < (shared ? 1 : block.hosts); ++host) {
    for (std::uint32_t index = 0; index < per_host; ++index) {
      block.vertices.push_back({kind, shared ? std::nullopt : std::optional(host), index});
    }
  }
  return first;
}

void join(Block& block, std::uint32_t from, std::uint32_t to, WireKind kind, std::uint32_t wires, Rate rate) {
  block.wires.push_back({from, to, kind, wires, rate.value, rate.evidence});
  block.wires.push_back({to, from, kind, wires, rate.value, rate.evidence});
}

void join_chips(Block& block, std::uint32_t first_chip, std::span<const std::uint32_t> wires_to_chip,
                Rate port) {
  std::uint32_t all_wires = 0;
  for (const std::uint32_t wires : wires_to_chip) all_wires += wires;
  const auto rate_of_first = [&](std::uint32_t wires) {
    return Bandwidth{static_cast<std::int64_t>(Int128{port.value.value} * wires / all_wires)};
  };
  for (const BlockGpu& gpu : block.gpus) {
    std::uint32_t before = 0;
    for (std::uint32_t chip = 0; chip < wires_to_chip.size(); ++chip) {
      const std::uint32_t wires = wires_to_chip[chip];
      const Bandwidth rate = rate_of_first(before + wires) - rate_of_first(before);
      join(block, gpu.vertex, first_chip + chip, WireKind::nvlink, wires, {rate, port.evidence});
      before += wires;
    }
  }
}

Block hgx_host(const HgxDesign& design) {
  Block block{std::string(design.name)};
  add_gpus(block, 8);
  const auto chip_count = static_cast<std::uint32_t>(design.wires_to_chip.size());
  const std::uint32_t chips = add_vertices(block, VertexKind::nvswitch, chip_count);
  const std::uint32_t switches = add_vertices(block, VertexKind::pcie_switch, 8);
  const std::uint32_t sockets = add_vertices(block, VertexKind::cpu, 2);
  add_nics(block, 8, design.nic);
  join_chips(block, chips, design.wires_to_chip, {design.nvlink.value, design.chips});
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    join(block, gpu, switches + gpu, WireKind::pcie, 1, design.pcie);
    join(block, switches + gpu, block.nics[gpu].vertex, WireKind::pcie, 1, slot_of(design.pcie, design.nic));
    join(block, switches + gpu, sockets + gpu / 4, WireKind::pcie, 1, design.pcie);
  }
  join(block, sockets, sockets + 1, WireKind::socket, 1, design.socket);
  return block;
}

Block nvl72_rack(const RackDesign& design, std::uint32_t trays) {
  std::array<std::uint32_t, 18> wires_to_chip{};
  wires_to_chip.fill(1);
  Block block{std::string(design.name), trays};
  add_gpus(block, 4);
  const std::uint32_t chips = add_vertices(block, VertexKind::nvswitch, 18, true);
  const std::uint32_t graces = add_vertices(block, VertexKind::cpu, 2);
  add_nics(block, 4, design.nic);
  join_chips(block, chips, wires_to_chip, design.nvlink);
  for (std::uint32_t gpu = 0; gpu < 4 * trays; ++gpu) {
    join(block, gpu, graces + gpu / 2, WireKind::c2c, 1, design.c2c);
    join(block, graces + gpu / 2, block.nics[gpu].vertex, WireKind::pcie, 1,
         slot_of(design.slot, design.nic));
  }
  for (std::uint32_t tray = 0; tray < trays; ++tray) {
    join(block, graces + 2 * tray, graces + 2 * tray + 1, WireKind::socket, 1, design.socket);
  }
  return block;
}

}  // namespace isthmus
