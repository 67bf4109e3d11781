#include "model/topology/nccl_xml_writer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/importers.hpp"
#include "model/topology/nccl_xml_written.hpp"

namespace isthmus {
namespace {

constexpr std::string_view file_name = "export.xml";

void require_one_host(const Topology& topology) {
  if (topology.blocks.size() != 1 || topology.blocks[0] >= topology.types.size())
    refuse_export(fmt::format("{} blocks", topology.blocks.size()), "one block of one host");
  const Block& block = topology.types[topology.blocks[0]];
  if (block.hosts != 1) refuse_export(fmt::format("a block of {} hosts", block.hosts), "a block of one host");
  for (const BlockGpu& gpu : block.gpus) {
    const std::string name = vertex_name(block, gpu.vertex);
    if (gpu.partition != 0)
      refuse_export(fmt::format("{} in NVLink partition {}", name, gpu.partition), "one partition");
    if (gpu.nic)
      refuse_export(fmt::format("{}, told to use NIC {}", name, *gpu.nic), "GPUs that use the nearest NIC");
  }
}

}  // namespace

void refuse_export(const std::string& found, const std::string& allowed) {
  throw InputError({"", 0, "NCCL XML"}, found, allowed);
}

std::string to_nccl_xml(const Topology& topology) {
  require_one_host(topology);
  const Block& block = topology.types[topology.blocks[0]];
  WrittenXml written = write_nccl_xml(topology, {});
  Block read = read_nccl_xml(written.text, std::string(file_name)).topology.types[0];
  // Whether GPUDirect is on follows from GPU and NIC; where that is not what is wanted, the GPU says so.
  std::map<std::uint32_t, bool> gdr;
  for (std::size_t i = 0; i < std::min(block.gpus.size(), read.gpus.size()); ++i)
    if (block.gpus[i].gpudirect != read.gpus[i].gpudirect)
      gdr[block.gpus[i].vertex] = block.gpus[i].gpudirect;
  if (!gdr.empty()) {
    written = write_nccl_xml(topology, gdr);
    read = read_nccl_xml(written.text, std::string(file_name)).topology.types[0];
  }
  if (const std::optional<std::string> difference = first_difference(block, written, read))
    refuse_export(*difference, "what NCCL's XML can say");
  return written.text;
}

}  // namespace isthmus
