#include "model/topology/nccl_rates.hpp"

#include <algorithm>
#include <array>

namespace isthmus {
namespace {

struct PcieGeneration {
  std::string_view number;   // of GT/s, as the kernel prints it
  std::string_view written;  // what an exporter writes: one of NCCL's own texts
  double x16 = 0;            // GB/s
};

constexpr std::array pcie_generations{
    PcieGeneration{"2.5", "2.5 GT/s PCIe", 4},   PcieGeneration{"5", "5.0 GT/s PCIe", 8},
    PcieGeneration{"8", "8.0 GT/s PCIe", 15.75}, PcieGeneration{"16", "16.0 GT/s PCIe", 31.5},
    PcieGeneration{"32", "32.0 GT/s PCIe", 63},  PcieGeneration{"64", "64.0 GT/s PCIe", 121},
};

// NCCL 2.30.7; it takes the first that the text begins with.
constexpr std::array<std::string_view, 10> nccl_texts{
    "2.5 GT/s", "5 GT/s",         "5.0 GT/s PCIe", "8 GT/s",         "8.0 GT/s PCIe",
    "16 GT/s",  "16.0 GT/s PCIe", "32 GT/s",       "32.0 GT/s PCIe", "64.0 GT/s PCIe",
};

struct CpuPlan {
  CpuWords cpu;
  double rate = 0;  // GB/s
};

// The first entry of a rate is what an exporter writes; of an Intel family, models are lower limits.
constexpr std::array cpu_plans{
    CpuPlan{{"x86_64", "GenuineIntel", 6, 0xCF}, 40},
    CpuPlan{{"x86_64", "GenuineIntel", 6, 0x8F}, 22},
    CpuPlan{{"x86_64", "GenuineIntel", 6, 0x55}, 10},
    CpuPlan{{"arm64", "", 0, 0}, 6},
    CpuPlan{{"x86_64", "GenuineIntel", 0, 0}, 6},
    CpuPlan{{"x86_64", "AuthenticAMD", 0, 0}, 16},
    CpuPlan{{"x86_64", "CentaurHauls", 0, 0}, 6},
    CpuPlan{{"x86_64", "  Shanghai  ", 0, 0}, 6},
    CpuPlan{{"ppc64", "", 0, 0}, 32},
};

bool applies(const CpuWords& rule, const CpuWords& cpu) {
  if (rule.arch != cpu.arch) return false;
  if (rule.vendor.empty()) return true;
  if (rule.vendor != cpu.vendor) return false;
  return rule.family == 0 || (rule.family == cpu.family && cpu.model >= rule.model);
}

Bandwidth of_width(double x16, std::uint32_t width) { return {gigabytes_per_second(x16).value * width / 16}; }

}  // namespace

std::optional<Bandwidth> pcie_x16_rate(std::string_view speed) {
  const std::size_t unit = speed.find(" GT/s");
  if (unit == std::string_view::npos) return std::nullopt;
  std::string_view number = speed.substr(0, unit);
  if (number.ends_with(".0")) number.remove_suffix(2);
  for (const PcieGeneration& generation : pcie_generations)
    if (generation.number == number) return gigabytes_per_second(generation.x16);
  return std::nullopt;
}

bool nccl_knows_pcie_speed(std::string_view speed) {
  return std::ranges::any_of(nccl_texts, [&](std::string_view text) { return speed.starts_with(text); });
}

std::optional<PcieWords> pcie_words(Bandwidth rate) {
  for (const std::uint32_t width : {16U, 8U, 4U, 2U, 1U, 32U, 12U})
    for (const PcieGeneration& generation : pcie_generations)
      if (of_width(generation.x16, width) == rate) return PcieWords{generation.written, width};
  return std::nullopt;
}

std::optional<Bandwidth> nvlink_rate(std::int64_t sm) {
  if (sm >= 100) return gigabytes_per_second(50);
  if (sm == 86) return gigabytes_per_second(14.0625);
  if (sm >= 70) return gigabytes_per_second(25);
  if (sm >= 60) return gigabytes_per_second(20);
  return std::nullopt;
}

std::optional<std::int64_t> nvlink_sm(Bandwidth rate) {
  for (const std::int64_t sm : {90, 100, 60, 86})
    if (nvlink_rate(sm) == rate) return sm;
  return std::nullopt;
}

std::optional<Bandwidth> socket_rate(const CpuWords& cpu) {
  for (const CpuPlan& plan : cpu_plans)
    if (applies(plan.cpu, cpu)) return gigabytes_per_second(plan.rate);
  return std::nullopt;
}

std::optional<CpuWords> socket_words(Bandwidth rate) {
  for (const CpuPlan& plan : cpu_plans)
    if (gigabytes_per_second(plan.rate) == rate) return plan.cpu;
  return std::nullopt;
}

}  // namespace isthmus
