#pragma once
// Topology files of others as Topology values. Nothing is guessed silently: what a file leaves open has a
// rate of 0 (or nvlink_known, gpus_known false) and a finding that says so; a doubtful value is taken as it
// stands and reported. Formats: NCCL's system XML (NCCL_TOPO_DUMP_FILE; AMD's dialect with xgmi), NCCL's
// graph XML, `nvidia-smi topo -m`, `ibnetdiscover`, and the system block of an NCCL log.
// Invariant: every reader either returns a topology without topology_faults or raises InputError with file,
// line and attribute; it takes time and memory in proportion to the text, which is at most
// max_topology_bytes. Sources of the formats: docs/topology-files.md.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

inline constexpr std::size_t max_topology_bytes = std::size_t{64} << 20;

enum class TopologyFormat : std::uint8_t { nccl_xml, nccl_graph, nvidia_smi, ibnetdiscover, nccl_log, json };
std::string_view to_string(TopologyFormat format);

/// Recognised by content, never by the file's name; nullopt when it is none of them.
std::optional<TopologyFormat> recognise_topology(std::string_view text);

/// One host (several where host_hash says so; then each is a host of one block). `file` names the text in
/// messages.
ImportedTopology read_nccl_xml(std::string_view text, const std::string& file);
ImportedTopology read_nvidia_smi(std::string_view text, const std::string& file);
ImportedTopology read_ibnetdiscover(std::string_view text, const std::string& file);
ImportedTopology read_nccl_log(std::string_view text, const std::string& file);

/// Reads a file of any of these formats, JSON included. Raises InputError for a graph XML, which describes no
/// machine, and for a text of no known format.
ImportedTopology import_topology(const std::filesystem::path& file);

}  // namespace isthmus
