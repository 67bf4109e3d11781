#pragma once
// NCCL's graph XML (NCCL_GRAPH_DUMP_FILE): the rings, trees and NVLS groups that NCCL found on a machine. It
// says which GPUs and NICs a channel visits, nothing about wires. nchannels counts search channels, before
// NCCL duplicates them. A graph without channels is a valid "not available".
// Invariant: `dev` values are base 16 in the file whatever they look like: host index << 56 | device.
// Source: NCCL 2.30.7's reader, restated in docs/topology-files.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

struct NcclChannelStop {
  bool net = false;  // a network device, else a GPU
  std::uint32_t host = 0, dev = 0;
  std::optional<std::int64_t> rank;
};

struct NcclGraph {
  int id = 0;       // 0 ring, 1 tree, 2 CollNet chain, 3 NVLS, 4 CollNet direct
  int pattern = 0;  // 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct
  bool cross_nic = false, same_channels = false;
  double speed_intra = 0, speed_inter = 0;  // GB/s per channel
  std::optional<double> latency_inter;      // microseconds
  std::string type_intra, type_inter;       // NCCL's names of path kinds
  std::vector<std::vector<NcclChannelStop>> channels;
};

struct NcclGraphFile {
  std::vector<NcclGraph> graphs;
  std::vector<Finding> findings;  // a ring that visits a GPU twice, a count that does not agree, ...
};

/// Raises InputError with file, line and attribute. At most max_topology_bytes of text.
NcclGraphFile read_nccl_graph(std::string_view text, const std::string& file);

}  // namespace isthmus
