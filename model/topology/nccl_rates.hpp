#pragma once
// The words of NCCL's XML that stand for rates, both ways: PCIe generations, NVLink generations by compute
// capability, CPU types by what NCCL plans between two of them.
// Invariant: rates are nominal and per direction, save those between CPUs, which are NCCL's planning
// values; a text that names no rate gives nullopt. rate = x16 rate * width / 16, in whole bytes per second.
// Constants: PCIe x16 4, 8, 15.75, 31.5, 63, 121 GB/s (generations 1 to 6, after line coding, as PCI-SIG
// and vendors quote them); NVLink 20, 25, 25, 50 GB/s per link (generations 1, 2 to 4, 5; vendor), 14.0625
// on sm86; between CPUs: NCCL 2.30.7. docs/topology-files.md has the tables.

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/units.hpp"

namespace isthmus {

/// What NCCL 2.30.7 plans for a NIC that hangs at a CPU without PCIe.
constexpr Bandwidth nic_without_pcie{5'000'000'000'000};

/// What stands in `link_speed` and `link_width`.
struct PcieWords {
  std::string_view speed;
  std::uint32_t width = 16;
};

/// "16.0 GT/s PCIe", "16 GT/s": the rate of sixteen lanes.
std::optional<Bandwidth> pcie_x16_rate(std::string_view speed);
/// Whether NCCL knows the text; it plans with generation 3 for any other, "16.0 GT/s" among them.
bool nccl_knows_pcie_speed(std::string_view speed);
/// The widest, then slowest, link of exactly this rate.
std::optional<PcieWords> pcie_words(Bandwidth rate);

/// Per link and direction. `sm` is 10 * major + minor of the compute capability.
std::optional<Bandwidth> nvlink_rate(std::int64_t sm);
std::optional<std::int64_t> nvlink_sm(Bandwidth rate);

/// NCCL's attributes of a `cpu`.
struct CpuWords {
  std::string_view arch, vendor;
  std::int64_t family = 0, model = 0;
};

/// What NCCL plans between two such CPUs of one host; nullopt for a CPU that it does not know.
std::optional<Bandwidth> socket_rate(const CpuWords& cpu);
std::optional<CpuWords> socket_words(Bandwidth rate);

}  // namespace isthmus
