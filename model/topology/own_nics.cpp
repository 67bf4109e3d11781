#include "model/topology/own_nics.hpp"

#include "model/topology/nccl_nics.hpp"

namespace isthmus {

std::vector<std::optional<std::uint32_t>> own_nics(const Block& block, const std::vector<char>& plugged) {
  const auto usable = [&](std::uint32_t nic) { return plugged.empty() || plugged[nic] != 0; };
  Block reduced = block;  // what is not plugged in is no network device
  std::vector<std::uint32_t> number;
  reduced.nics.clear();
  for (std::uint32_t nic = 0; nic < block.nics.size(); ++nic) {
    if (!usable(nic)) continue;
    number.push_back(nic);
    reduced.nics.push_back(block.nics[nic]);
  }
  // What is compared is the path: a NIC that has become slow stays its GPU's.
  for (BlockNic& nic : reduced.nics) nic.rate = gigabytes_per_second(100);
  for (BlockGpu& gpu : reduced.gpus) gpu = {gpu.vertex, gpu.partition, true, {}};
  NcclSettings settings;
  settings.pxn = false;
  const NcclPaths paths = nccl_paths(reduced, settings);
  std::vector<std::optional<std::uint32_t>> own(block.gpus.size());
  for (std::uint32_t gpu = 0; gpu < own.size(); ++gpu) {
    const std::optional<std::uint32_t> told = block.gpus[gpu].nic;
    if (told && usable(*told)) {
      own[gpu] = told;
    } else if (const auto net = net_of_channel(paths, gpu, 0)) {
      own[gpu] = number[paths.system.nets[*net].ports.front()];
    }
  }
  return own;
}

}  // namespace isthmus
