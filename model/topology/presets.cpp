#include "model/topology/presets.hpp"

#include <array>

namespace isthmus {
namespace {

constexpr Bandwidth cable_400g = gigabytes_per_second(50), cable_800g = gigabytes_per_second(100);
constexpr Rate nic_400g{cable_400g, Evidence::vendor}, nic_800g{cable_800g, Evidence::vendor};
constexpr Rate pcie_gen5_x16{gigabytes_per_second(63), Evidence::published};
constexpr Rate pcie_gen6_x16{gigabytes_per_second(121), Evidence::inferred};  // that it is Gen6 is our choice
constexpr Rate nvlink4_port{gigabytes_per_second(450), Evidence::vendor};
constexpr Rate nvlink5_port{gigabytes_per_second(900), Evidence::vendor};
// What NCCL plans for; the physical rates are not published.
constexpr Rate sapphire_rapids{gigabytes_per_second(22), Evidence::nccl};
constexpr Rate emerald_rapids{gigabytes_per_second(40), Evidence::nccl};
constexpr Rate grace_to_grace{gigabytes_per_second(6), Evidence::nccl};
constexpr Rate c2c_gb200{gigabytes_per_second(225), Evidence::inferred};
constexpr Rate c2c_gb300{gigabytes_per_second(223.6), Evidence::published};

constexpr std::array<std::uint32_t, 4> hopper_chips{4, 5, 5, 4};
constexpr std::array<std::uint32_t, 2> blackwell_chips{9, 9};

constexpr HgxDesign h100{"DGX H100 host", hopper_chips, Evidence::published, nvlink4_port,
                         pcie_gen5_x16,   nic_400g,     sapphire_rapids};
constexpr HgxDesign h200{"DGX H200 host", hopper_chips, Evidence::published, nvlink4_port,
                         pcie_gen5_x16,   nic_400g,     sapphire_rapids};
constexpr HgxDesign b200{"DGX B200 host", blackwell_chips, Evidence::published, nvlink5_port,
                         pcie_gen5_x16,   nic_400g,        emerald_rapids};
constexpr HgxDesign b300{"DGX B300 host", blackwell_chips, Evidence::inferred, nvlink5_port,
                         pcie_gen6_x16,   nic_800g,        emerald_rapids};
constexpr RackDesign gb200{"GB200 NVL72 rack", nvlink5_port, c2c_gb200,
                           pcie_gen5_x16,      nic_400g,     grace_to_grace};
constexpr RackDesign gb300{"GB300 NVL72 rack", nvlink5_port, c2c_gb300,
                           pcie_gen6_x16,      nic_800g,     grace_to_grace};

constexpr NetworkDesign units(Bandwidth wire) { return {"unit", 32, 8, 32, 8, wire, 1}; }
constexpr NetworkDesign racks(Bandwidth wire) { return {"rack", 18, 4, 18, 32, wire, 1}; }

constexpr auto one = NetworkKind::one_switch, pod = NetworkKind::superpod;

constexpr std::array designs{
    PresetDesign{
        {"dgx-h100", "DGX H100 hosts behind one non-blocking switch"}, &h100, {}, units(cable_400g), one},
    PresetDesign{
        {"dgx-h200", "DGX H200 hosts behind one non-blocking switch"}, &h200, {}, units(cable_400g), one},
    PresetDesign{{"dgx-b200", "DGX B200 hosts (8 GPUs, NVLink 5) behind one non-blocking switch"},
                 &b200,
                 {},
                 units(cable_400g),
                 one},
    PresetDesign{{"dgx-b300", "DGX B300 hosts (800 Gbit/s NICs) behind one non-blocking switch"},
                 &b300,
                 {},
                 units(cable_800g),
                 one},
    PresetDesign{
        {"dgx-h100-superpod", "units of 32 DGX H100 hosts behind rail-aligned leaves, spines, cores"},
        &h100,
        {},
        units(cable_400g),
        pod},
    PresetDesign{
        {"dgx-h200-superpod", "units of 32 DGX H200 hosts behind rail-aligned leaves, spines, cores"},
        &h200,
        {},
        units(cable_400g),
        pod},
    PresetDesign{
        {"dgx-b200-superpod", "units of 32 DGX B200 hosts behind rail-aligned leaves, spines, cores"},
        &b200,
        {},
        units(cable_400g),
        pod},
    PresetDesign{
        {"dgx-b300-superpod", "units of 32 DGX B300 hosts behind rail-aligned leaves, spines, cores"},
        &b300,
        {},
        units(cable_800g),
        pod},
    PresetDesign{{"gb200-nvl72",
                  "racks of 18 compute trays with 4 GPUs in one NVLink domain; a leaf per rack and rail"},
                 {},
                 &gb200,
                 racks(cable_400g),
                 pod},
    PresetDesign{
        {"gb300-nvl72", "the same with GB300 and 800 Gbit/s NICs"}, {}, &gb300, racks(cable_800g), pod},
};

}  // namespace

std::span<const PresetDesign> preset_designs() { return designs; }

std::vector<FabricPreset> fabric_presets() {
  std::vector<FabricPreset> presets;
  presets.reserve(designs.size());
  for (const PresetDesign& design : designs) presets.push_back(design.preset);
  return presets;
}

}  // namespace isthmus
