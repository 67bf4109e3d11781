#pragma once
// Internal to model/topology/nccl_xml_writer*.cpp: a written file, and how its devices map to vertices.
// Invariant: `others` holds every CPU and PCIe switch once, in the order of the file; GPUs and NICs keep
// their own order when read again, as NVSwitches do by address. first_difference judges what was read
// again.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

struct WrittenXml {
  std::string text;
  std::vector<std::uint32_t> others{};
  std::map<std::uint32_t, std::string> chips{};  // targets, by NVSwitch vertex
};

/// `gdr`: what to write in place of a GPU's own attribute, by vertex.
WrittenXml write_nccl_xml(const Topology& topology, const std::map<std::uint32_t, bool>& gdr);

/// "GPU 0": for messages.
std::string vertex_name(const Block& block, std::uint32_t vertex);

/// In words what `read` says otherwise than `block`; nullopt when they agree.
std::optional<std::string> first_difference(const Block& block, const WrittenXml& written, const Block& read);

[[noreturn]] void refuse_export(const std::string& found, const std::string& allowed);

}  // namespace isthmus
