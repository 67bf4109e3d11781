#pragma once
// What `isthmus topology` prints, as text for people or as JSON (docs/json.md): a topology in numbers with
// its findings, the rings and trees of an NCCL graph file, the difference of two topologies.
// Invariant: each document ends with a newline; the JSON carries every number of the text; null stands for
// what the source does not say.

#include <string>
#include <vector>

#include "model/topology/nccl_graph.hpp"
#include "model/topology/topology.hpp"

namespace isthmus::report {

/// Findings of the reader first, then those of topology_findings under codes that the reader did not use.
std::string topology_document(const ImportedTopology& imported, bool json);
std::string nccl_graph_document(const std::string& name, const NcclGraphFile& file, bool json);
/// `first` and `second` are what the user calls them.
std::string difference_document(const std::string& first, const std::string& second,
                                const std::vector<Finding>& differences, bool json);

}  // namespace isthmus::report
