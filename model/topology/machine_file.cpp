#include "model/topology/machine_file.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/importers.hpp"

namespace isthmus {
namespace {

void set(BlockWire& wire, Bandwidth rate) {
  wire.rate = rate;
  wire.evidence = Evidence::user;
}

bool is_gpu(const Block& block, std::uint32_t vertex) {
  return block.vertices[vertex].kind == VertexKind::gpu;
}

/// `port` over a GPU's wires in proportion to their number, each way; the parts add up exactly.
void set_nvlink(Block& block, Bandwidth port) {
  for (const BlockGpu& gpu : block.gpus) {
    for (const bool out : {true, false}) {
      std::int64_t all = 0, before = 0;
      const auto mine = [&](const BlockWire& wire) {
        return wire.kind == WireKind::nvlink && (out ? wire.from : wire.to) == gpu.vertex &&
               (out || !is_gpu(block, wire.from));
      };
      for (const BlockWire& wire : block.wires) all += mine(wire) ? wire.wires : 0;
      for (BlockWire& wire : block.wires) {
        if (!mine(wire)) continue;
        const auto upto = [&](std::int64_t wires) {
          return static_cast<std::int64_t>(Int128{port.value} * wires / all);
        };
        set(wire, {upto(before + wire.wires) - upto(before)});
        before += wire.wires;
      }
    }
  }
}

/// What the scenario says instead of the file: one NVSwitch that all GPUs hang on.
void assume_switch(Block& block) {
  const auto chip = static_cast<std::uint32_t>(block.vertices.size());
  block.vertices.push_back({VertexKind::nvswitch, 0, 0, "as fabric.nvlink_bandwidth implies", {}});
  for (const BlockGpu& gpu : block.gpus) {
    block.wires.push_back({gpu.vertex, chip, WireKind::nvlink, 1, {}, Evidence::user});
    block.wires.push_back({chip, gpu.vertex, WireKind::nvlink, 1, {}, Evidence::user});
  }
  block.nvlink_known = true;
}

void fill_in(const FabricSpec& spec, Block& block) {
  if (spec.nvlink_bandwidth && !block.nvlink_known) assume_switch(block);
  if (spec.nvlink_bandwidth) set_nvlink(block, *spec.nvlink_bandwidth);
  for (BlockWire& wire : block.wires) {
    if (wire.kind == WireKind::socket && wire.rate.value == 0) {  // what NCCL plans for a DGX H100
      wire.rate = gigabytes_per_second(22);
      wire.evidence = Evidence::nccl;
    }
    if (spec.pcie_bandwidth && (wire.kind == WireKind::pcie || wire.kind == WireKind::c2c) &&
        (wire.rate.value == 0 || is_gpu(block, wire.from) || is_gpu(block, wire.to))) {
      set(wire, *spec.pcie_bandwidth);
    }
  }
  for (BlockNic& nic : block.nics) {
    if (!spec.nic_bandwidth) continue;
    nic.rate = *spec.nic_bandwidth;
    nic.evidence = Evidence::user;
    for (BlockWire& wire : block.wires) {  // a slot that nobody described carries its NIC
      if ((wire.from == nic.vertex || wire.to == nic.vertex) && wire.rate.value == 0) set(wire, nic.rate);
    }
  }
}

[[noreturn]] void refuse_rate(std::string_view what, std::string_view key) {
  throw InputError(Location{{}, 0, fmt::format("fabric.{}", key)}, fmt::format("no rate for {}", what),
                   "a rate, since the topology file does not say one");
}

}  // namespace

Topology read_machine(const FabricSpec& spec, const std::string& key,
                      const std::filesystem::path& directory) {
  const Location where{{}, 0, key + ".import"};
  Topology topology = import_topology(directory / spec.import_file).topology;
  if (!topology.gpus_known) {
    throw InputError(where, fmt::format("\"{}\", which lists no GPUs", spec.import_file),
                     "a file that describes hosts with their GPUs");
  }
  if (topology.network.switches.empty() &&
      (topology.blocks.size() != 1 || topology.types.front().hosts != 1)) {
    throw InputError(where, fmt::format("\"{}\" with several hosts and no network", spec.import_file),
                     "one host, or a whole machine with its switches");
  }
  const auto refuse = [&](std::string_view name, bool given) {
    if (!given) return;
    throw InputError(Location{{}, 0, fmt::format("{}.{}", key, name)}, "a value",
                     "no such key with this topology file");
  };
  refuse("gpus_per_rack", spec.gpus_per_rack.has_value());
  if (!topology.network.switches.empty()) {  // the file describes a whole machine
    refuse("hosts", spec.hosts != 1);
    refuse("network", spec.network.has_value());
    refuse("oversubscription", spec.oversubscription != 1);
  }
  for (Block& block : topology.types) fill_in(spec, block);
  return topology;
}

void require_known_rates(const Topology& topology) {
  for (const Block& block : topology.types) {
    for (const BlockWire& wire : block.wires) {
      if (wire.rate.value > 0) continue;
      if (wire.kind == WireKind::nvlink) refuse_rate("NVLink", "nvlink_bandwidth");
      refuse_rate(wire.kind == WireKind::c2c ? "C2C" : "PCIe", "pcie_bandwidth");
    }
    for (const BlockNic& nic : block.nics) {
      if (nic.rate.value == 0) refuse_rate("the NICs", "nic_bandwidth");
    }
  }
}

}  // namespace isthmus
