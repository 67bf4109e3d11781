#pragma once
// The machine that this program runs on, as Linux and NVIDIA's driver tell of it: CPUs and NUMA nodes, the
// PCI tree above GPUs and NICs, NVLinks. It becomes a topology by way of NCCL's system XML, so it reads as
// the file does that NCCL dumps on the same machine; what differs, docs/topology.md says. PCI: of the
// bridges above a device every second one counts, since a switch is its upstream port and a port below;
// what remains directly below a root port hangs on the CPU. A link's speed and width are the lesser of both
// ends' maxima. NICs: active RDMA ports; where there is none, network devices of the machine that are up.
// GPUs: those that NVML lists; where it cannot be asked, NVIDIA's and AMD's on PCI, NVLink unknown.
// Invariant: whatever the files hold, there is a topology; what is odd or left out becomes a finding.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw/nvml.hpp"
#include "model/topology/topology.hpp"

namespace isthmus::hw {

struct NumaNode {
  std::int64_t number = 0;  // -1: Linux numbers none
  std::string processors;   // "0-15,32-47"
  std::string affinity;     // the same as words of a mask, or empty
};

/// A function of a PCI device, or the upstream port of a switch.
struct PciFunction {
  std::string above;                              // busid of the switch above; empty: the CPU
  std::int64_t numa = -1;                         // -1: not known
  std::map<std::string, std::string> attributes;  // by NCCL's names, such as link_speed
};

struct LiveGpu {
  std::string busid, name;
  std::optional<std::uint32_t> sm;  // compute capability, 90 for 9.0
  std::vector<NvmlLink> nvlinks;
};

struct LiveNic {
  std::string name, busid;    // busid: empty where it is no PCI device
  std::int64_t numa = -1;     // of one that is none
  std::int64_t megabits = 0;  // per second; 0 or less: not known
  std::int64_t port = 1;
  std::string guid;  // "0x..."; ports with the same one are one card
  bool rdma = false, gpudirect = false;
};

struct LiveMachine {
  std::string name, processor;  // host name; "AMD EPYC"
  std::uint32_t processors = 0;
  std::map<std::string, std::string> cpu;  // attributes of each CPU, by NCCL's names
  std::vector<NumaNode> nodes;             // with processors; at least one
  std::map<std::string, PciFunction> pci;  // by busid: GPUs, NICs and the switches above them
  std::vector<LiveGpu> gpus;               // by busid
  std::vector<LiveNic> nics;
  std::string nvml;  // why NVLink is not known; empty: it is
  std::vector<Finding> findings;
};

/// `root` holds the folders sys and proc, "/" those of this machine.
LiveMachine read_machine(const std::filesystem::path& root, const NvmlAnswer& nvml);

/// In the form of NCCL_TOPO_DUMP_FILE.
std::string to_nccl_xml(const LiveMachine& machine);
ImportedTopology topology_of(const LiveMachine& machine);

}  // namespace isthmus::hw
