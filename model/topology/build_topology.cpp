// From a specification to a topology: one part after the other, the link between them, the edits.

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_spec.hpp"
#include "model/topology/edits.hpp"
#include "model/topology/machine_file.hpp"
#include "model/topology/presets.hpp"

namespace isthmus {
namespace {

constexpr int max_hosts = 65'536;
constexpr std::uint32_t trays_of_rack = 18, gpus_of_tray = 4;

Location at(const std::string& key) { return {std::string(), 0, key}; }

/// Rates of this range keep sums over all ports, and times of all sizes, well inside 64 bits.
void require_rate(std::optional<Bandwidth> rate, const std::string& key) {
  constexpr std::int64_t least = 1'000'000, most = 10'000'000'000'000;
  if (!rate || (rate->value >= least && rate->value <= most)) return;
  throw InputError(at(key), fmt::format("{} bytes per second", rate->value), "1 MB/s to 10 TB/s");
}

const PresetDesign& design_of(const FabricSpec& spec, const std::string& key) {
  const auto designs = preset_designs();
  const auto found = std::find_if(designs.begin(), designs.end(), [&](const PresetDesign& candidate) {
    return candidate.preset.name == spec.preset;
  });
  if (found != designs.end()) return *found;
  std::string known;
  for (const PresetDesign& each : designs)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.preset.name);
  throw InputError(at(key + ".preset"), fmt::format("\"{}\"", spec.preset), known);
}

void judge(const FabricSpec& spec, const std::string& key) {
  if (spec.hosts < 1 || spec.hosts > max_hosts) {
    throw InputError(at(key + ".hosts"), fmt::format("{}", spec.hosts), fmt::format("1 to {}", max_hosts));
  }
  require_rate(spec.nic_bandwidth, key + ".nic_bandwidth");
  require_rate(spec.nvlink_bandwidth, key + ".nvlink_bandwidth");
  require_rate(spec.pcie_bandwidth, key + ".pcie_bandwidth");
  if (!(spec.oversubscription >= 1 && spec.oversubscription <= 64)) {
    throw InputError(at(key + ".oversubscription"), fmt::format("{}", spec.oversubscription), "1 to 64");
  }
}

template <class Design>
Design overridden(Design design, const FabricSpec& spec) {
  if (spec.nvlink_bandwidth) design.nvlink = {*spec.nvlink_bandwidth, Evidence::user};
  if (spec.nic_bandwidth) design.nic = {*spec.nic_bandwidth, Evidence::user};
  return design;
}

void add_hgx_hosts(const FabricSpec& spec, HgxDesign design, Topology& topology) {
  if (spec.pcie_bandwidth) design.pcie = {*spec.pcie_bandwidth, Evidence::user};
  topology.types.push_back(hgx_host(overridden(design, spec)));
  topology.blocks.assign(to_size(spec.hosts), 0);
}

void add_racks(const FabricSpec& spec, RackDesign design, std::uint32_t trays, Topology& topology) {
  if (spec.pcie_bandwidth) design.c2c = {*spec.pcie_bandwidth, Evidence::user};
  const auto hosts = static_cast<std::uint32_t>(spec.hosts);
  if (hosts >= trays) {
    topology.types.push_back(nvl72_rack(overridden(design, spec), trays));
    topology.blocks.assign(hosts / trays, 0);
  }
  if (hosts % trays == 0) return;
  topology.blocks.push_back(static_cast<std::uint32_t>(topology.types.size()));
  topology.types.push_back(nvl72_rack(overridden(design, spec), hosts % trays));
}

std::uint32_t used_trays(const FabricSpec& spec, const std::string& key) {
  const int gpus = spec.gpus_per_rack.value_or(static_cast<int>(trays_of_rack * gpus_of_tray));
  if (gpus < 4 || gpus > 72 || gpus % 4 != 0) {
    throw InputError(at(key + ".gpus_per_rack"), fmt::format("{}", gpus), "4 to 72 in steps of 4");
  }
  return static_cast<std::uint32_t>(gpus) / gpus_of_tray;
}

Cabling cable(NetworkKind kind, const NetworkDesign& design, int hosts, std::uint32_t rails) {
  const auto count = static_cast<std::uint32_t>(hosts);
  switch (kind) {
    case NetworkKind::superpod: return superpod_network(design, count, rails);
    case NetworkKind::rails: return rail_switches(count, rails);
    case NetworkKind::one_switch: break;
  }
  return one_switch(count, rails);
}

/// The kind of network asked for; only leaves below spines can be oversubscribed.
NetworkKind network_kind(const FabricSpec& spec, NetworkKind usual, const std::string& key) {
  const NetworkKind kind = spec.network.value_or(usual);
  if (kind != NetworkKind::superpod && spec.oversubscription != 1) {
    throw InputError(at(key + ".oversubscription"), fmt::format("{}", spec.oversubscription),
                     "1 where no leaves stand below spines (fabric.network: superpod)");
  }
  return kind;
}

Topology preset_topology(const FabricSpec& spec, const std::string& key) {
  const PresetDesign& design = design_of(spec, key);
  NetworkDesign network = design.network;
  network.oversubscription = spec.oversubscription;
  Topology topology;
  topology.name = spec.preset;
  if (design.rack != nullptr) {
    network.hosts_per_group = used_trays(spec, key);
    add_racks(spec, *design.rack, network.hosts_per_group, topology);
  } else if (spec.gpus_per_rack) {
    throw InputError(at(key + ".gpus_per_rack"), fmt::format("{}", *spec.gpus_per_rack),
                     "no such key with preset " + spec.preset + ", whose hosts stand in no NVL72 rack");
  } else {
    add_hgx_hosts(spec, *design.host, topology);
  }
  Cabling cabling = cable(network_kind(spec, design.kind, key), network, spec.hosts,
                          design.rack != nullptr ? gpus_of_tray : 8);
  topology.network = std::move(cabling.network);
  topology.switch_of_nic = std::move(cabling.switch_of_nic);
  return topology;
}

/// A host from a file, as often as asked, behind a network of the scenario's choice; or a whole machine.
Topology imported_topology(const FabricSpec& spec, const std::string& key,
                           const std::filesystem::path& directory) {
  Topology topology = read_machine(spec, key, directory);
  if (!topology.network.switches.empty()) return topology;
  std::uint32_t rails = 1;
  Bandwidth fastest = gigabytes_per_second(50);
  const Block& host = topology.types.front();
  for (const BlockNic& nic : host.nics) {
    rails = std::max(rails, nic.rail + 1);
    fastest = std::max(fastest, nic.rate);
  }
  const NetworkDesign design{"unit", 32, rails, 32, 8, fastest, spec.oversubscription};
  Cabling cabling = cable(network_kind(spec, NetworkKind::one_switch, key), design, spec.hosts, rails);
  topology.blocks.assign(to_size(spec.hosts), 0);
  topology.network = std::move(cabling.network);
  topology.switch_of_nic.clear();
  for (std::size_t copy = 0; copy < to_size(spec.hosts); ++copy) {
    for (const BlockNic& nic : topology.types.front().nics) {
      topology.switch_of_nic.push_back(cabling.switch_of_nic[copy * rails + nic.rail]);
    }
  }
  return topology;
}

Topology part_topology(const FabricSpec& spec, const std::string& key,
                       const std::filesystem::path& directory) {
  judge(spec, key);
  Topology topology =
      spec.import_file.empty() ? preset_topology(spec, key) : imported_topology(spec, key, directory);
  // A whole machine from a file keeps its own routing unless the scenario says another.
  const bool says = spec.import_file.empty() || spec.routing != Routing{};
  if (says) topology.routing = spec.routing;
  return topology;
}

/// One end of the link between parts: every switch of the part's highest tier carries its share of it.
void join_tops(const Network& part, std::uint32_t first, std::uint32_t gateway, Bandwidth join,
               Network& network) {
  VertexKind top = VertexKind::leaf;
  for (const NetworkSwitch& each : part.switches) top = std::max(top, each.tier);
  std::vector<std::uint32_t> tops;
  for (std::uint32_t i = 0; i < part.switches.size(); ++i) {
    if (part.switches[i].tier == top) tops.push_back(first + i);
  }
  const auto share_before = [&](std::size_t n) {
    return static_cast<std::int64_t>(Int128{join.value} * static_cast<std::int64_t>(n) /
                                     static_cast<std::int64_t>(tops.size()));
  };
  for (std::size_t i = 0; i < tops.size(); ++i) {
    network.cables.push_back(
        {tops[i], gateway, 1, Bandwidth{share_before(i + 1) - share_before(i)}, Evidence::user});
  }
}

/// The parts side by side, their switches told apart by the part's number, below one gateway.
Topology joined(const std::vector<Topology>& parts, Bandwidth join) {
  Topology all;
  std::vector<std::uint32_t> first_switch;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Topology& part = parts[p];
    const auto types = static_cast<std::uint32_t>(all.types.size());
    const auto switches = static_cast<std::uint32_t>(all.network.switches.size());
    first_switch.push_back(switches);
    all.name += (p == 0 ? "" : " + ") + part.name;
    all.types.insert(all.types.end(), part.types.begin(), part.types.end());
    for (const std::uint32_t type : part.blocks) all.blocks.push_back(types + type);
    for (const NetworkSwitch& each : part.network.switches) {
      all.network.switches.push_back({each.tier, fmt::format("{}, part {}", each.name, p)});
    }
    for (NetworkCable cable : part.network.cables) {
      cable.low += switches;
      cable.high += switches;
      all.network.cables.push_back(cable);
    }
    for (const std::uint32_t at_switch : part.switch_of_nic) {
      all.switch_of_nic.push_back(at_switch == no_switch ? no_switch : switches + at_switch);
    }
  }
  const auto gateway = static_cast<std::uint32_t>(all.network.switches.size());
  all.network.switches.push_back({VertexKind::gateway, "link between the parts"});
  for (std::size_t p = 0; p < parts.size(); ++p) {
    join_tops(parts[p].network, first_switch[p], gateway, join, all.network);
  }
  return all;
}

Topology parts_topology(const FabricSpec& spec, const std::filesystem::path& directory) {
  require_rate(spec.join_bandwidth, "fabric.join.bandwidth");
  if (!spec.join_bandwidth) {
    throw InputError(at("fabric.join"), "nothing", "the bandwidth of the link between the parts");
  }
  std::vector<Topology> parts;
  int hosts = 0;
  for (std::size_t p = 0; p < spec.parts.size(); ++p) {
    const std::string key = fmt::format("fabric.parts.{}", p);
    if (!spec.parts[p].parts.empty()) throw InputError(at(key), "parts of a part", "a preset or a file");
    parts.push_back(part_topology(spec.parts[p], key, directory));
    hosts += spec.parts[p].hosts;
  }
  if (hosts > max_hosts) {
    throw InputError(at("fabric.parts"), fmt::format("{} hosts", hosts), fmt::format("1 to {}", max_hosts));
  }
  Topology topology = joined(parts, *spec.join_bandwidth);
  topology.routing = spec.routing;
  return topology;
}

}  // namespace

Topology build_topology(const FabricSpec& spec, const std::filesystem::path& directory) {
  Topology topology =
      spec.parts.empty() ? part_topology(spec, "fabric", directory) : parts_topology(spec, directory);
  for (std::size_t i = 0; i < spec.edits.size(); ++i) {
    apply_edit(spec.edits[i], fmt::format("fabric.edits.{}", i), topology);
  }
  require_known_rates(topology);
  return topology;
}

}  // namespace isthmus
