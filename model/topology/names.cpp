#include "model/topology/names.hpp"

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {

std::string_view display_name(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu: return "GPU";
    case VertexKind::nvswitch: return "NVSwitch chip";
    case VertexKind::pcie_switch: return "PCIe switch";
    case VertexKind::cpu: return "CPU socket";
    case VertexKind::nic: return "NIC";
    case VertexKind::leaf: return "leaf";
    case VertexKind::spine: return "spine";
    case VertexKind::core: return "core";
    case VertexKind::gateway: return "gateway";
  }
  ISTHMUS_ASSERT(false, "vertex kind {}", static_cast<int>(kind));
  return {};
}

std::string_view display_name(WireKind kind) {
  switch (kind) {
    case WireKind::nvlink: return "NVLink";
    case WireKind::c2c: return "C2C";
    case WireKind::pcie: return "PCIe";
    case WireKind::socket: return "socket link";
  }
  ISTHMUS_ASSERT(false, "wire kind {}", static_cast<int>(kind));
  return {};
}

std::vector<BlockPlace> block_places(const Topology& topology) {
  std::vector<BlockPlace> places(1);
  places.reserve(topology.blocks.size() + 1);
  for (const std::uint32_t type : topology.blocks) {
    const Block& block = topology.types[type];
    const BlockPlace& last = places.back();
    places.push_back({last.block + 1, last.host + block.hosts, last.gpu + block.gpus.size(),
                      last.nic + block.nics.size()});
  }
  return places;
}

std::string vertex_name(const BlockVertex& vertex, const BlockPlace& place) {
  const std::string label = vertex.label.empty() ? "" : fmt::format(" ({})", vertex.label);
  const std::string owner = vertex.host ? fmt::format("on host {}", place.host + *vertex.host)
                                        : fmt::format("of block {}", place.block);
  return fmt::format("{} {}{} {}", display_name(vertex.kind), vertex.index, label, owner);
}

std::string switch_name(const Network& network, std::uint32_t number) {
  const NetworkSwitch& each = network.switches[number];
  return each.name.empty() ? fmt::format("{} {}", display_name(each.tier), number) : each.name;
}

std::string rate_text(Bandwidth rate) {
  if (rate == Bandwidth{0}) return "unknown";
  return fmt::format("{} GB/s", static_cast<double>(rate.value) / 1e9);
}

}  // namespace isthmus
