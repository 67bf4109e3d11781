#pragma once
// Internal to model/topology/nccl_xml_write.cpp: what identifies the devices of a host in NCCL's XML, taken
// from the attributes of an imported host or invented.
// Invariants: addresses are distinct where those of the file are; invented `dev` numbers rise with the
// vertices and stand behind all others, so that a reader that sorts by them finds the same order.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "model/topology/nccl_xml_tree.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

class NcclDeviceNames {
 public:
  NcclDeviceNames(const Block& block, const PcieTree& tree);

  /// Empty where the vertex has none.
  std::string attribute(std::uint32_t vertex, const std::string& key) const;
  bool has_any(std::uint32_t vertex, std::string_view prefix) const;

  /// Whether it is a `pci` of its own, not a part of the one above or a NIC without PCIe.
  bool own_pci(std::uint32_t vertex) const;
  /// Whether no file described it, so that its attributes have to be invented.
  bool is_invented(std::uint32_t vertex) const;
  /// Of a `pci`, or of an NVSwitch.
  const std::string& busid(std::uint32_t vertex) const { return busids_.at(vertex); }
  /// Of a GPU or NIC that is invented.
  std::int64_t dev(std::uint32_t vertex) const { return devs_.at(vertex); }
  /// Of all NVSwitches, by vertex.
  std::map<std::uint32_t, std::string> chips() const;

 private:
  void name_devices();
  void number_devices(VertexKind kind, const std::string& prefix);

  const Block& block_;
  const PcieTree& tree_;
  std::map<std::uint32_t, std::string> busids_;
  std::map<std::uint32_t, std::int64_t> devs_;
};

}  // namespace isthmus
