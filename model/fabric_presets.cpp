// Presets as parts. Every number here stands in docs/fabric.md with its source.

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_parts.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t max_hosts = 65'536;
constexpr std::uint32_t switch_ports = 64;
constexpr std::uint32_t pod_leaves = switch_ports / 2;  // a spine below cores: half its ports down, half up

constexpr Bandwidth wire_400g = gigabytes_per_second(50);
constexpr Bandwidth pcie_gen5_x16 = gigabytes_per_second(63);
constexpr Bandwidth nvlink4_port = gigabytes_per_second(450);
constexpr Bandwidth nvlink5_port = gigabytes_per_second(900);
constexpr Bandwidth c2c_gb200 = gigabytes_per_second(225);
// What NCCL plans for; the physical rates are not published. No route of a preset goes there.
constexpr Bandwidth socket_to_socket_xeon = gigabytes_per_second(22);
constexpr Bandwidth socket_to_socket_grace = gigabytes_per_second(6);

std::uint32_t rounded_up(std::uint32_t n, std::uint32_t divisor) { return (n + divisor - 1) / divisor; }

/// The links of a GPU that an edge and its way back belong to.
struct Ports {
  std::uint32_t gpu = 0;
  PortLink::Number there = PortLink::count, back = PortLink::count;
};

/// Adds an edge and its way back.
void join(PartBlock& block, std::uint32_t from, std::uint32_t to, std::uint32_t wires, Bandwidth rate,
          std::optional<Ports> ports = {}) {
  const auto link = [&](PortLink::Number port) { return LinkId{ports->gpu * PortLink::count + port}; };
  block.edges.push_back({from, to, wires, rate, ports ? std::optional(link(ports->there)) : std::nullopt});
  block.edges.push_back({to, from, wires, rate, ports ? std::optional(link(ports->back)) : std::nullopt});
}

/// Appends `per_host` vertices for every host of the block, or for the block as a whole; returns the first.
std::uint32_t add_vertices(PartBlock& block, VertexKind kind, std::uint32_t per_host, bool shared = false) {
  const std::uint32_t first = static_cast<std::uint32_t>(block.vertices.size());
  for (std::uint32_t host = 0; host < (shared ? 1 : block.hosts); ++host) {
    for (std::uint32_t index = 0; index < per_host; ++index) {
      block.vertices.push_back({kind, shared ? std::nullopt : std::optional(host), index});
    }
  }
  return first;
}

/// Every GPU to every chip; the parts of its port's rate add up to the rate exactly.
void join_nvlink(PartBlock& block, std::uint32_t first_chip, std::span<const std::uint32_t> wires_to_chip) {
  std::uint32_t all_wires = 0;
  for (const std::uint32_t wires : wires_to_chip) all_wires += wires;
  const auto rate_of_first = [&](std::uint32_t wires) {
    return Bandwidth{static_cast<std::int64_t>(Int128{block.nvlink.value} * wires / all_wires)};
  };
  for (std::uint32_t gpu = 0; gpu < block.gpus(); ++gpu) {
    std::uint32_t wires_before = 0;
    for (std::uint32_t chip = 0; chip < wires_to_chip.size(); ++chip) {
      const std::uint32_t wires = wires_to_chip[chip];
      const Bandwidth rate = rate_of_first(wires_before + wires) - rate_of_first(wires_before);
      join(block, gpu, first_chip + chip, wires, rate, Ports{gpu, PortLink::nvlink_out, PortLink::nvlink_in});
      wires_before += wires;
    }
  }
}

/// A GPU and its NIC below `vertex` (a PCIe switch or Grace). The NIC's slot belongs to the NIC's links,
/// which its port limits: a NIC faster than the slot is taken to sit in a slot that carries it.
void join_gpu_and_nic(PartBlock& block, std::uint32_t gpu, std::uint32_t vertex) {
  join(block, gpu, vertex, 1, block.pcie, Ports{gpu, PortLink::pcie_out, PortLink::pcie_in});
  join(block, vertex, block.nic_vertices[gpu], 1, std::max(pcie_gen5_x16, block.nic),
       Ports{gpu, PortLink::nic_out, PortLink::nic_in});
}

void set_rates(PartBlock& block, const FabricSpec& spec, Bandwidth nvlink, Bandwidth pcie) {
  block.nvlink = spec.nvlink_bandwidth.value_or(nvlink);
  block.pcie = pcie;
  block.nic = spec.nic_bandwidth.value_or(wire_400g);
}

void add_nics(PartBlock& block) {
  const std::uint32_t first = add_vertices(block, VertexKind::nic, block.gpus_per_host);
  for (std::uint32_t gpu = 0; gpu < block.gpus(); ++gpu) block.nic_vertices.push_back(first + gpu);
}

/// HGX: 8 GPUs on 4 chips, each GPU with its NIC under one PCIe switch, four of those per socket.
PartBlock hgx_host(const FabricSpec& spec) {
  constexpr std::array<std::uint32_t, 4> wires_to_chip{4, 5, 5, 4};
  PartBlock block;
  block.gpus_per_host = 8;
  set_rates(block, spec, nvlink4_port, pcie_gen5_x16);
  add_vertices(block, VertexKind::gpu, 8);
  const std::uint32_t chips = add_vertices(block, VertexKind::nvswitch, 4);
  const std::uint32_t switches = add_vertices(block, VertexKind::pcie_switch, 8);
  const std::uint32_t sockets = add_vertices(block, VertexKind::cpu, 2);
  add_nics(block);
  join_nvlink(block, chips, wires_to_chip);
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    join_gpu_and_nic(block, gpu, switches + gpu);
    join(block, switches + gpu, sockets + gpu / 4, 1, pcie_gen5_x16);
  }
  join(block, sockets, sockets + 1, 1, socket_to_socket_xeon);
  return block;
}

/// NVL72: trays of 2 Grace and 4 GPUs; every GPU has one wire to each of 18 chips; NICs hang off Grace.
PartBlock nvl72_rack(const FabricSpec& spec, std::uint32_t trays) {
  std::array<std::uint32_t, 18> wires_to_chip{};
  wires_to_chip.fill(1);
  PartBlock block;
  block.hosts = trays;
  block.gpus_per_host = 4;
  block.pcie_name = "C2C";
  set_rates(block, spec, nvlink5_port, c2c_gb200);
  add_vertices(block, VertexKind::gpu, 4);
  const std::uint32_t chips = add_vertices(block, VertexKind::nvswitch, 18, true);
  const std::uint32_t graces = add_vertices(block, VertexKind::cpu, 2);
  add_nics(block);
  join_nvlink(block, chips, wires_to_chip);
  for (std::uint32_t gpu = 0; gpu < block.gpus(); ++gpu) join_gpu_and_nic(block, gpu, graces + gpu / 2);
  for (std::uint32_t tray = 0; tray < trays; ++tray) {
    join(block, graces + 2 * tray, graces + 2 * tray + 1, 1, socket_to_socket_grace);
  }
  return block;
}

PartNetwork one_big_switch(std::uint32_t hosts) {
  PartNetwork network;
  network.hosts_per_group = hosts;
  network.wire = wire_400g;
  return network;
}

/// Leaves below spines, and cores where 64 ports per spine no longer reach all leaves. `up` wires leave each
/// leaf; `reserved_leaves` is the smallest number that the spines are cabled for.
PartNetwork rail_aligned(PartNetwork network, std::uint32_t hosts, std::uint32_t up,
                         std::uint32_t reserved_leaves) {
  network.wire = wire_400g;
  network.leaves = rounded_up(hosts, network.hosts_per_group) * network.leaves_per_group;
  network.leaves_per_pod = network.leaves;
  if (network.leaves <= switch_ports) {
    const std::uint32_t cabled_leaves = std::max(std::bit_ceil(network.leaves), reserved_leaves);
    network.leaf_spine_wires = switch_ports / cabled_leaves;
    network.spines_per_pod = up / network.leaf_spine_wires;
    return network;
  }
  network.leaves_per_pod = pod_leaves;
  network.pods = rounded_up(network.leaves, pod_leaves);
  network.leaf_spine_wires = 1;
  network.spines_per_pod = up;
  // Beyond 64 pods a core needs a port per pod: more than a 64-port switch has (docs/fabric.md).
  const std::uint32_t cabled_pods = std::min(std::bit_ceil(network.pods), switch_ports);
  network.spine_core_wires = switch_ports / cabled_pods;
  network.cores_per_spine = pod_leaves / network.spine_core_wires;
  return network;
}

FabricParts big_switch_of_hgx(const FabricSpec& spec) {
  const auto hosts = static_cast<std::uint32_t>(spec.hosts);
  return {hosts, hgx_host(spec), {}, one_big_switch(hosts)};
}

FabricParts superpod_of_hgx(const FabricSpec& spec) {
  const auto hosts = static_cast<std::uint32_t>(spec.hosts);
  PartNetwork network;
  network.group_name = "unit";
  network.hosts_per_group = 32;
  network.leaves_per_group = 8;
  return {hosts, hgx_host(spec), {}, rail_aligned(network, hosts, 32, 8)};
}

FabricParts nvl72_racks(const FabricSpec& spec) {
  constexpr std::uint32_t trays = 18;
  const auto hosts = static_cast<std::uint32_t>(spec.hosts);
  PartNetwork network;
  network.group_name = "rack";
  network.hosts_per_group = trays;
  network.leaves_per_group = 4;
  FabricParts parts{hosts, nvl72_rack(spec, trays), {}, rail_aligned(network, hosts, 18, 32)};
  if (hosts % trays != 0) parts.last = nvl72_rack(spec, hosts % trays);
  return parts;
}

struct Entry {
  FabricPreset preset;
  FabricParts (*build)(const FabricSpec&);
};

constexpr std::array entries{
    Entry{{"dgx-h100", "DGX H100 hosts behind one non-blocking switch"}, big_switch_of_hgx},
    Entry{{"dgx-h200", "DGX H200 hosts behind one non-blocking switch"}, big_switch_of_hgx},
    Entry{{"dgx-h100-superpod", "units of 32 DGX H100 hosts behind rail-aligned leaves, spines, cores"},
          superpod_of_hgx},
    Entry{{"dgx-h200-superpod", "units of 32 DGX H200 hosts behind rail-aligned leaves, spines, cores"},
          superpod_of_hgx},
    Entry{{"gb200-nvl72",
           "racks of 18 compute trays with 4 GPUs in one NVLink domain; a leaf per rack and rail"},
          nvl72_racks},
};

Location at(std::string_view key) { return {std::string(), 0, std::string(key)}; }

/// Rates of this range keep sums over all ports, and times of all sizes, well inside 64 bits.
void require_rate(std::optional<Bandwidth> rate, std::string_view key) {
  constexpr std::int64_t least = 1'000'000, most = 10'000'000'000'000;
  if (!rate || (rate->value >= least && rate->value <= most)) return;
  throw InputError(at(key), fmt::format("{} bytes per second", rate->value), "1 MB/s to 10 TB/s");
}

}  // namespace

std::vector<FabricPreset> fabric_presets() {
  std::vector<FabricPreset> presets;
  presets.reserve(entries.size());
  for (const Entry& entry : entries) presets.push_back(entry.preset);
  return presets;
}

FabricParts describe(const FabricSpec& spec) {
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& candidate) {
    return candidate.preset.name == spec.preset;
  });
  if (entry == entries.end()) {
    std::string known;
    for (const Entry& each : entries)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each.preset.name);
    throw InputError(at("fabric.preset"), fmt::format("\"{}\"", spec.preset), known);
  }
  if (spec.hosts < 1 || spec.hosts > static_cast<int>(max_hosts)) {
    throw InputError(at("fabric.hosts"), fmt::format("{}", spec.hosts), fmt::format("1 to {}", max_hosts));
  }
  require_rate(spec.nic_bandwidth, "fabric.nic_bandwidth");
  require_rate(spec.nvlink_bandwidth, "fabric.nvlink_bandwidth");
  return entry->build(spec);
}

}  // namespace isthmus
