// read_nccl_xml: from items to a topology. NVLink: nccl_xml_nvlinks.cpp; findings: nccl_xml_inspect.cpp.

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/topology/nccl_rates.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {
namespace {

/// GPUs, NICs, the rest.
int group_of(VertexKind kind) { return kind == VertexKind::gpu ? 0 : kind == VertexKind::nic ? 1 : 2; }

// The keys come from the devices, not from their places in the file, so that a file written from the sorted
// items gives them in the same order again.
bool stands_before(const NcclItem& a, const NcclItem& b) {
  constexpr auto last = std::numeric_limits<std::int64_t>::max();
  constexpr auto last_id = std::numeric_limits<std::uint64_t>::max();
  const auto place = [](const NcclItem& item) { return std::pair(item.host, group_of(item.kind)); };
  if (place(a) != place(b)) return place(a) < place(b);
  if (group_of(a.kind) == 2) return false;
  const auto key = [&](const NcclItem& item) {
    const bool gpu = item.kind == VertexKind::gpu;
    return std::tuple(item.dev.value_or(last), item.id.value_or(last_id),
                      (gpu ? item.mlopart : item.port).value_or(-1), std::string_view(item.label), item.guid);
  };
  return key(a) < key(b);
}

BlockVertex vertex_of(const NcclItem& item, std::uint32_t index) {
  return {item.kind, item.host, index, item.label, item.attributes};
}

void add_both_ways(Block& block, BlockWire wire) {
  block.wires.push_back(wire);
  std::swap(wire.from, wire.to);
  block.wires.push_back(wire);
}

std::uint32_t cpu_above(const NcclSystem& system, std::uint32_t item) {
  while (!system.items[item].parents.empty()) item = system.items[item].parents.front();
  return item;
}

void add_tree(const NcclSystem& system, Block& block) {
  for (std::uint32_t i = 0; i < system.items.size(); ++i) {
    const NcclItem& item = system.items[i];
    for (const std::uint32_t parent : item.parents)
      add_both_ways(block, {i, parent, WireKind::pcie, 1, item.rate, item.evidence});
    if (!item.c2c) continue;
    const Bandwidth rate{item.c2c->megabytes * 1'000'000 * item.c2c->count};
    add_both_ways(block, {i, cpu_above(system, i), WireKind::c2c, item.c2c->count, rate, Evidence::file});
  }
}

CpuWords words_of(const NcclItem& cpu) {
  const auto text = [&](const char* name) -> std::string_view {
    const auto found = cpu.attributes.find(name);
    return found == cpu.attributes.end() ? std::string_view() : std::string_view(found->second);
  };
  return {text("cpu.arch"), text("cpu.vendor"), c_integer(text("cpu.familyid")).value_or(0),
          c_integer(text("cpu.modelid")).value_or(0)};
}

/// NCCL joins every pair of CPUs of a host. It takes the type of all from one of them.
void add_sockets(NcclSystem& system, Block& block) {
  std::vector<std::vector<std::uint32_t>> cpus(system.hosts.size());
  for (std::uint32_t i = 0; i < system.items.size(); ++i)
    if (system.items[i].kind == VertexKind::cpu) cpus[system.items[i].host].push_back(i);
  for (const std::vector<std::uint32_t>& host : cpus) {
    if (host.size() < 2) continue;
    const std::optional<Bandwidth> rate = socket_rate(words_of(system.items[host.front()]));
    if (!rate) {
      system.findings.add("cpu-unknown", place_of(system, system.items[host.front()]),
                          "of no type that NCCL knows: the rate between CPUs is not known");
    }
    for (std::size_t i = 0; i < host.size(); ++i)
      for (std::size_t j = i + 1; j < host.size(); ++j)
        add_both_ways(block,
                      {host[i], host[j], WireKind::socket, 1, rate.value_or(Bandwidth{}), Evidence::nccl});
  }
}

/// A pcilink joins two PCIe switches beside the tree; NCCL takes it for free, the file has no rate.
void add_peers(NcclSystem& system, Block& block) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> switches;
  for (std::uint32_t i = 0; i < system.items.size(); ++i)
    if (const NcclItem& item = system.items[i]; item.kind == VertexKind::pcie_switch && item.id)
      switches.emplace(std::pair(item.host, *item.id), i);
  std::set<std::pair<std::uint32_t, std::uint32_t>> records, joined;
  for (std::uint32_t i = 0; i < system.items.size(); ++i) {
    NcclItem& item = system.items[i];
    std::string& kept = block.vertices[i].attributes["pcilink.target"];
    for (const std::string& peer : item.peers) {
      const auto found = switches.find({item.host, busid_number(peer).value_or(0)});
      if (found == switches.end() || found->second == i) {
        system.findings.add("pcilink-unlisted", item.label, "a pcilink to no other switch of the file");
        continue;
      }
      if (!records.emplace(i, found->second).second) continue;
      kept += (kept.empty() ? "" : " ") + system.items[found->second].label;
      if (!joined.insert(std::minmax(i, found->second)).second) continue;
      add_both_ways(block, {i, found->second, WireKind::pcie, 1, {}, Evidence::file});
      system.findings.add("pcilink-rate-unknown", item.label, "a pcilink, for which the file has no rate");
    }
    if (kept.empty()) block.vertices[i].attributes.erase("pcilink.target");
  }
}

/// Ports with one guid, or below one `pci`, are a card; cards count in the order of their first ports.
void add_nics(const NcclSystem& system, Block& block) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> by_guid, by_busid;
  std::vector<std::uint32_t> cards(system.hosts.size());
  for (std::uint32_t i = 0; i < system.items.size(); ++i) {
    const NcclItem& item = system.items[i];
    if (item.kind != VertexKind::nic) continue;
    std::uint32_t card = cards[item.host];
    const auto same_guid = by_guid.find({item.host, item.guid});
    const auto same_busid = by_busid.find({item.host, item.id.value_or(0)});
    if (item.guid != 0 && same_guid != by_guid.end())
      card = same_guid->second;
    else if (item.id && same_busid != by_busid.end())
      card = same_busid->second;
    else
      ++cards[item.host];
    if (item.guid != 0) by_guid.emplace(std::pair(item.host, item.guid), card);
    if (item.id) by_busid.emplace(std::pair(item.host, *item.id), card);
    block.nics.push_back({i, card, card, item.nic_rate, item.nic_evidence});
  }
}

void add_vertices(const NcclSystem& system, Block& block) {
  std::map<std::pair<std::uint32_t, VertexKind>, std::uint32_t> counts;
  for (const NcclItem& item : system.items) {
    block.vertices.push_back(vertex_of(item, counts[{item.host, item.kind}]++));
    if (item.kind == VertexKind::gpu)
      block.gpus.push_back(
          {static_cast<std::uint32_t>(block.vertices.size() - 1), 0, item.gdr, std::nullopt});
  }
}

}  // namespace

void sort_items(NcclSystem& system) {
  std::vector<std::uint32_t> order(system.items.size()), place(system.items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return stands_before(system.items[a], system.items[b]);
  });
  std::vector<NcclItem> sorted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(system.items[order[i]]));
  }
  for (NcclItem& item : sorted)
    for (std::uint32_t& parent : item.parents) parent = place[parent];
  system.items = std::move(sorted);
}

ImportedTopology read_nccl_xml(std::string_view text, const std::string& file) {
  NcclSystem system = read_nccl_items(text, file);
  sort_items(system);
  Block block;
  block.name = system.name + " host";
  block.hosts = static_cast<std::uint32_t>(system.hosts.size());
  add_vertices(system, block);
  add_tree(system, block);
  add_sockets(system, block);
  add_peers(system, block);
  add_nics(system, block);
  add_nvlinks(system, block);
  inspect(system, block);
  ImportedTopology imported;
  imported.topology.name = system.name;
  imported.topology.gpus_known = !block.gpus.empty();
  imported.topology.switch_of_nic.assign(block.nics.size(), no_switch);
  imported.topology.blocks = {0};
  imported.topology.types.push_back(std::move(block));
  imported.findings = system.findings.take();
  return imported;
}

}  // namespace isthmus
