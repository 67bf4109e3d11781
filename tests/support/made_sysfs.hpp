#pragma once
// Machines made up as trees of devices, and written into a folder as Linux shows them below /sys and /proc:
// root ports, switches as an upstream port and one downstream port for each child, functions with their links
// from /sys/bus and /sys/class. What a reader should find is the tree itself, which knows no ports.
// Invariants: addresses are distinct; a device's address is known once the machine is written; symbolic links
// are relative, as Linux has them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace isthmus::test {

enum class MadeKind : std::uint8_t { gpu, socket_nic, rdma_nic, pci_switch };

struct MadeDevice {
  MadeKind kind = MadeKind::gpu;
  int generation = 5, width = 16;            // of the device, 1 to 6; what it could do
  int port_generation = 5, port_width = 16;  // of the port above
  bool root_port = true;                     // false: directly on the root bus, as in virtual machines
  std::vector<MadeDevice> below{};           // of a switch
  std::string busid{}, name{};               // set by write_sysfs
};

struct MadeMachine {
  std::vector<std::vector<MadeDevice>> nodes;  // by NUMA node: what hangs on it
};

/// "0000:1b:00.0"
void write_sysfs(MadeMachine& machine, const std::filesystem::path& root);

/// Up to three nodes, switches in switches, all kinds of devices; the same for the same seed.
MadeMachine made_machine(std::uint64_t seed);

/// Every device with the busid of the switch above it (empty: its CPU) and its node.
struct MadePlace {
  const MadeDevice* device;
  std::string above;
  std::size_t node;
};
std::vector<MadePlace> places_of(const MadeMachine& machine);

}  // namespace isthmus::test
