#include "model/topology/nccl_device_names.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/topology/nccl_rates.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {

NcclDeviceNames::NcclDeviceNames(const Block& block, const PcieTree& tree) : block_(block), tree_(tree) {
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
  return !attribute(vertex, "pci.busid").empty() || is_invented(vertex);
}

bool NcclDeviceNames::is_invented(std::uint32_t vertex) const {
  if (!block_.vertices[vertex].attributes.empty()) return false;
  if (tree_.parents[vertex].empty()) return true;
  // What the reader makes of an element without attributes: a NIC without PCIe, or a part of a `pci`.
  const std::uint32_t above = tree_.parents[vertex].front();
  const BlockVertex& parent = block_.vertices[above];
  if (parent.kind == VertexKind::cpu) return tree_.rate(vertex, above) != nic_without_pcie;
  return parent.label.empty() || parent.label != block_.vertices[vertex].label;
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
    if (block_.vertices[v].kind == kind && is_invented(v)) devs_[v] = next++;
}

}  // namespace isthmus
