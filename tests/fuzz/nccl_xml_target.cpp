// NCCL's system XML. What was read keeps the invariants of a topology; what is written of it reads as the
// same topology again, and is written the same.

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "model/topology/importers.hpp"
#include "model/topology/nccl_xml_writer.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using namespace isthmus;

void check_wires(const Block& block) {
  for (const BlockWire& wire : block.wires) {
    ISTHMUS_ASSERT(wire.from < block.vertices.size() && wire.to < block.vertices.size(), "{} {}", wire.from,
                   wire.to);
    ISTHMUS_ASSERT(wire.from != wire.to && wire.wires > 0 && wire.rate.value >= 0, "{} {} {}", wire.from,
                   wire.wires, wire.rate.value);
  }
}

void check(const ImportedTopology& imported) {
  const Topology& topology = imported.topology;
  ISTHMUS_ASSERT(topology.blocks.size() == 1 && topology.types.size() == 1, "{}", topology.blocks.size());
  const Block& block = topology.types[0];
  check_wires(block);
  const auto count = [&](VertexKind kind) {
    return std::ranges::count(block.vertices, kind, &BlockVertex::kind);
  };
  ISTHMUS_ASSERT(to_size(count(VertexKind::gpu)) == block.gpus.size(), "{} GPUs", block.gpus.size());
  ISTHMUS_ASSERT(to_size(count(VertexKind::nic)) == block.nics.size(), "{} NICs", block.nics.size());
  ISTHMUS_ASSERT(topology.switch_of_nic.size() == block.nics.size(), "{}", topology.switch_of_nic.size());
  for (const BlockGpu& gpu : block.gpus)
    ISTHMUS_ASSERT(block.vertices.at(gpu.vertex).kind == VertexKind::gpu, "{}", gpu.vertex);
  for (const BlockNic& nic : block.nics)
    ISTHMUS_ASSERT(block.vertices.at(nic.vertex).kind == VertexKind::nic && nic.card < block.nics.size(),
                   "{} {}", nic.vertex, nic.card);
  for (const Finding& finding : imported.findings)
    ISTHMUS_ASSERT(!finding.code.empty() && first_unprintable(finding.text) == finding.text.size(), "{}",
                   finding.code);
}

/// Several hosts, more elements than NCCL reads, and halves of GPUs whose records do not tell which half.
bool may_be_refused(const ImportedTopology& imported) {
  const auto excuses = [](const Finding& finding) {
    return finding.code == "split-gpu" || finding.code == "nccl-refuses-size";
  };
  return imported.topology.types[0].hosts > 1 || std::ranges::any_of(imported.findings, excuses);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::only_input_errors([&] {
    const ImportedTopology first = read_nccl_xml(text, "topology.xml");
    check(first);
    std::string written;
    fuzz::only_input_errors([&] { written = to_nccl_xml(first.topology); });
    ISTHMUS_ASSERT(!written.empty() || may_be_refused(first), "what was read of one host can be written");
    if (written.empty()) return;
    const Topology second = read_nccl_xml(written, "written.xml").topology;
    ISTHMUS_ASSERT(second == first.topology, "read again, it is the same: {}", written);
    ISTHMUS_ASSERT(to_nccl_xml(second) == written, "written again, it is the same: {}", written);
  });
  return 0;
}
