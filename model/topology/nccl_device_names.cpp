#include "model/topology/nccl_device_names.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {

NcclDeviceNames::NcclDeviceNames(const Block& block) : block_(block) {
  name_devices();
  number_devices(VertexKind::gpu, "gpu.");
  number_devices(VertexKind::nic, "net.");
}

std::string NcclDeviceNames::attribute(std::uint32_t vertex, const std::string& key) const {
  const auto found = block_.vertices[vertex].attributes.find(key);
  return found == block_.vertices[vertex].attributes.end() ? "" : found->second;
}

bool NcclDeviceNames::has_any(std::uint32_t vertex, std::string_view prefix) const {
  const auto& attributes = block_.vertices[vertex].attributes;
  const auto found = attributes.lower_bound(std::string(prefix));
  return found != attributes.end() && found->first.starts_with(prefix);
}

bool NcclDeviceNames::own_pci(std::uint32_t vertex) const {
  return !attribute(vertex, "pci.busid").empty() || (!has_any(vertex, "net.") && !has_any(vertex, "gpu."));
}

std::map<std::uint32_t, std::string> NcclDeviceNames::chips() const {
  std::map<std::uint32_t, std::string> found;
  for (std::uint32_t v = 0; v < block_.vertices.size(); ++v)
    if (block_.vertices[v].kind == VertexKind::nvswitch) found[v] = busids_.at(v);
  return found;
}

void NcclDeviceNames::name_devices() {
  std::set<std::uint64_t> used;
  for (std::uint32_t v = 0; v < block_.vertices.size(); ++v) {
    const bool chip = block_.vertices[v].kind == VertexKind::nvswitch;
    const std::string text = attribute(v, chip ? "nvlink.target" : "pci.busid");
    if (text.empty()) continue;
    busids_[v] = text;
    used.insert(busid_number(text).value_or(0));
  }
  std::uint32_t bus = 0x10;  // below are the buses of the CPU's own devices
  for (std::uint32_t v = 0; v < block_.vertices.size(); ++v) {
    const VertexKind kind = block_.vertices[v].kind;
    const bool needs_none = kind == VertexKind::cpu || (kind != VertexKind::nvswitch && !own_pci(v));
    if (needs_none || busids_.contains(v)) continue;
    std::string text;
    do {
      text = fmt::format("{:04x}:{:02x}:00.0", bus >> 8U, bus & 0xFFU);
      ++bus;
    } while (used.contains(*busid_number(text)));
    busids_[v] = text;
  }
}

void NcclDeviceNames::number_devices(VertexKind kind, const std::string& prefix) {
  std::int64_t next = 0;
  for (std::uint32_t v = 0; v < block_.vertices.size(); ++v)
    if (block_.vertices[v].kind == kind)
      next = std::max(next, c_integer(attribute(v, prefix + "dev")).value_or(-1) + 1);
  for (std::uint32_t v = 0; v < block_.vertices.size(); ++v)
    if (block_.vertices[v].kind == kind && !has_any(v, prefix)) devs_[v] = next++;
}

}  // namespace isthmus
