#pragma once
// Internal to the reader of NCCL logs: the system block as vertices and directed links, before they become a
// Block. Lines may have NCCL's prefix (host:process:thread [device] NCCL INFO), then those of the first
// process that prints a block are read and all others passed over. Ids are base 16 throughout.
// Invariants: roots are CPUs; every vertex below PCI has exactly one parent, so that parents end at a CPU;
// links join the kinds of vertices that NCCL joins with them, and never a vertex with itself.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology_text.hpp"

namespace isthmus {

enum class LogKind : std::uint8_t { gpu, pci, nvs, cpu, nic, net };
enum class LogLinkKind : std::uint8_t { nvl, c2c, pci, sys, net };

struct LogVertex {
  LogKind kind = LogKind::gpu;
  std::uint32_t host = 0;  // in the order of first mention
  std::uint64_t id = 0;
  std::vector<std::string> details{};     // what stands in brackets, cut at '/'
  std::optional<std::uint32_t> parent{};  // over PCI; of a NET its NIC
  Bandwidth up{};                         // rate of the link to the parent
};

struct LogLink {  // neither PCI nor NET: those are parents
  std::uint32_t from = 0, to = 0;
  LogLinkKind kind = LogLinkKind::nvl;
  Bandwidth rate;
};

struct LogBlock {
  std::uint32_t hosts = 0;
  std::vector<LogVertex> vertices;
  std::vector<LogLink> links;
};

inline constexpr std::size_t max_log_vertices = 4096;
inline constexpr std::size_t max_log_links = std::size_t{1} << 16;

/// Raises InputError with file and line.
LogBlock read_log_block(std::string_view text, const std::string& file, Findings& findings);

}  // namespace isthmus
