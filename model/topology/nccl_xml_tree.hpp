#pragma once
// Internal to model/topology/nccl_xml_write*.cpp: the PCIe wires of a host as the forest that NCCL's XML is.
// Invariants: every GPU, NIC and PCIe switch has a parent; only a NIC without PCIe has several, all CPUs;
// GPUs and NICs have no children; children stand as GPUs, NICs, switches, each in the order of vertices.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

struct PcieTree {
  std::vector<std::vector<std::uint32_t>> parents, children;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bandwidth> rates;

  Bandwidth rate(std::uint32_t from, std::uint32_t to) const { return rates.at({from, to}); }
};

/// Raises InputError where the wires form no such forest.
PcieTree find_tree(const Block& block);

}  // namespace isthmus
