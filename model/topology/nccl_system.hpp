#pragma once
// One block (model/topology/topology.hpp) as NCCL sees it: GPUs of the communicator, PCIe switches, CPUs,
// NICs and network devices, joined by links of NCCL's *planned* bandwidths, which are not those of the wires:
//   NVLink  per wire by compute capability (attribute gpu.sm; without it 25 GB/s nominal counts as sm90,
//           50 as sm100): 20.6 on sm90, 40.1 on sm100, 20 on sm70 and sm80, ...
//   PCIe    nominal x 48 / 63 (Gen5 x16: 63 -> 48); from 100 GB/s on (Gen6 x16: 121 -> 96) x 96 / 121
//   CPU-CPU by vendor and model of the CPU (attributes cpu.*); without them the wire's rate
//   C2C, network port: the rate itself. A wire of Evidence::nccl has its planned bandwidth already.
// All NVSwitches of a partition are one vertex; ports of one card are one network device; a PCIe switch with
// attribute pci.flattened is one with the switch above it.
// Invariant: links between two vertices of one kind are one link; links stand by falling bandwidth, the way
// up the PCIe tree last. Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <span>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

enum class NcclVertexKind : std::uint8_t { gpu, pcie, nvswitch, cpu, nic, net };
enum class NcclLinkKind : std::uint8_t { nvlink, c2c, pcie, socket, network };

struct NcclLink {
  std::uint32_t to = 0;  // index into NcclSystem::vertices
  NcclLinkKind kind = NcclLinkKind::pcie;
  Bandwidth bandwidth;
};

struct NcclVertex {
  NcclVertexKind kind = NcclVertexKind::gpu;
  std::uint32_t host = 0;  // without meaning for an NVSwitch
  std::vector<NcclLink> links{};
};

struct NcclGpu {
  std::uint32_t number = 0;  // in Block::gpus
  std::uint32_t vertex = 0;  // in NcclSystem::vertices
  std::uint32_t host = 0, dev = 0;
  std::uint32_t sm = 90;  // 10 x major + minor compute capability
  bool gpudirect = true;
  Bandwidth nvlink_wire;  // planned, of one wire; 0 without NVLink
  Bandwidth nvlink;       // planned, of all wires out of it
};

/// A network device: the ports of one card, merged.
struct NcclNet {
  std::uint32_t vertex = 0;
  std::uint32_t host = 0, card = 0;
  std::vector<std::uint32_t> ports;  // in Block::nics
  Bandwidth rate;                    // of all ports together
  bool gpudirect = true;
};

struct NcclCpu {
  std::uint32_t vertex = 0;
  std::uint32_t host = 0;
  bool arm = false, amd = false;
};

struct NcclSystem {
  std::vector<NcclVertex> vertices;
  std::vector<NcclGpu> gpus;  // in the order of `members`
  std::vector<NcclNet> nets;  // in the order of their first ports
  std::vector<NcclCpu> cpus;
};

/// `members`: numbers of the block's GPUs that the communicator holds; NCCL ignores all others.
NcclSystem nccl_system(const Block& block, std::span<const std::uint32_t> members);

/// Planned bandwidth of one NVLink wire by compute capability.
Bandwidth planned_nvlink_wire(std::uint32_t sm);
/// Planned bandwidth of a PCIe link whose nominal rate is given; 0 (unknown) counts as Gen3 x16.
Bandwidth planned_pcie(Bandwidth nominal);

}  // namespace isthmus
