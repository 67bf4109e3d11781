#pragma once
// What NVIDIA's management library says of the GPUs: addresses, names, NVLinks. It belongs to the driver and
// is loaded when it is asked, so that the program runs, and is built, without any; the functions and values
// used here are those of its interface since driver 396 (nvml.h). Links that are down, or that join no GPU
// peers (capability 0, P2P), do not count, as with NCCL.
// Invariant: an answer with a refusal lists no GPUs.

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus::hw {

/// NVLinks of one GPU with the same other end.
struct NvmlLink {
  std::string target;    // busid; hidden_chip where a virtual machine does not see the NVSwitch
  bool to_chip = false;  // an NVSwitch
  std::uint32_t count = 0;
  friend bool operator==(const NvmlLink&, const NvmlLink&) = default;
};

/// NCCL's word for an NVSwitch that cannot be seen.
inline constexpr const char* hidden_chip = "fffffff:ff:ff.0";

struct NvmlGpu {
  std::string busid;  // "0000:1b:00.0"
  std::string name;
  std::uint32_t sm = 0;                               // 90 for compute capability 9.0
  std::uint32_t pcie_generation = 0, pcie_width = 0;  // the greatest possible; 0: not known
  std::vector<NvmlLink> nvlinks;
};

struct NvmlAnswer {
  std::string refusal;  // why there is none: "libnvidia-ml.so.1: cannot open shared object file"
  std::vector<NvmlGpu> gpus;
};

NvmlAnswer ask_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace isthmus::hw
