#pragma once
// Internal to the reader of `nvidia-smi topo -m`: where each device hangs, as far as the matrix says. PIX
// joins devices to a *group* below one PCIe switch, PXB groups to a *part* with one way to a CPU; parts and
// GPUs of one NUMA affinity share a CPU.
// Invariants: every device is in exactly one group of one part; `cpu` numbers SmiPlaces::cpus. Cells that
// contradict such a tree are findings, and the nearer word decides. A NIC that is SYS to every GPU hangs on
// a CPU of its own, which is what the file says literally; a finding names it (on Grace it is not far).

#include <cstdint>
#include <string>
#include <vector>

#include "model/topology/nvidia_smi_matrix.hpp"

namespace isthmus {

struct SmiPart {
  std::size_t cpu = 0;
  std::vector<std::vector<std::size_t>> groups;  // devices
};

struct SmiCpu {
  std::string label;    // "NUMA 0,3-9"
  std::string numa_id;  // the first number of the affinity; empty where the file does not say
};

struct SmiPlaces {
  std::vector<SmiCpu> cpus;
  std::vector<SmiPart> parts;
};

/// GPUs joined by NV<k>, directly or over others; one that is alone forms an island too.
std::vector<std::vector<std::size_t>> nvlink_islands(const SmiMatrix& matrix);

SmiPlaces find_places(const SmiMatrix& matrix, Findings& findings);

}  // namespace isthmus
