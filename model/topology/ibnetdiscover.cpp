// `ibnetdiscover` as a topology: the network as listed, and hosts of which nothing but adapters is known.

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/ibnetdiscover_parts.hpp"
#include "model/topology/importers.hpp"

namespace isthmus {
namespace {

// Types of blocks that a topology may have; here each host is one, since its adapters have their own GUIDs.
constexpr std::size_t max_ib_hosts = 65'536;

/// Switches in order of tier and name. Names that occur twice, as unconfigured switches have them, get their
/// GUID.
std::vector<std::uint32_t> add_switches(const IbListing& listing, const IbTiers& tiers, Network& network) {
  std::vector<std::uint32_t> order;
  std::map<std::string, std::size_t> count_of;
  for (std::uint32_t i = 0; i < listing.devices.size(); ++i) {
    if (tiers.of_device[i] == VertexKind::nic) continue;
    order.push_back(i);
    ++count_of[display_name(listing.devices[i])];
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (tiers.of_device[a] != tiers.of_device[b]) return tiers.of_device[a] < tiers.of_device[b];
    const std::string left = display_name(listing.devices[a]), right = display_name(listing.devices[b]);
    return left != right ? natural_less(left, right) : listing.devices[a].guid < listing.devices[b].guid;
  });
  std::vector<std::uint32_t> number_of(listing.devices.size(), no_switch);
  for (const std::uint32_t device : order) {
    std::string name = display_name(listing.devices[device]);
    if (count_of[name] > 1) name += fmt::format(" ({:016x})", listing.devices[device].guid);
    number_of[device] = static_cast<std::uint32_t>(network.switches.size());
    network.switches.push_back({tiers.of_device[device], std::move(name)});
  }
  return number_of;
}

void add_cables(const IbListing& listing, const IbTiers& tiers, const std::vector<std::uint32_t>& number_of,
                Network& network) {
  using Ends = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;  // low, high, rate
  std::map<Ends, std::uint32_t> wires;
  for (const IbLink& link : listing.links) {
    const bool up = tiers.of(link.a) < tiers.of(link.b);
    const IbPort low = up ? link.a : link.b, high = up ? link.b : link.a;
    if (tiers.of(low) < VertexKind::leaf || tiers.of(low) == tiers.of(high)) continue;
    ++wires[{number_of[low.device], number_of[high.device], link.rate.value}];
  }
  for (const auto& [ends, count] : wires) {
    const auto& [low, high, rate] = ends;
    network.cables.push_back({low, high, count, Bandwidth{rate}, Evidence::file});
  }
}

Block block_of(const IbHost& host, const IbListing& listing) {
  Block block;
  block.name = topology_name(host.name);
  block.nvlink_known = false;
  for (const IbNic& nic : host.nics) {
    const IbDevice& adapter = listing.devices[nic.adapter];
    const std::uint32_t vertex = add_vertex(block, VertexKind::nic, 0, topology_name(display_name(adapter)));
    block.vertices[vertex].attributes = {{"guid", fmt::format("0x{:016x}", adapter.guid)},
                                         {"port", fmt::format("{}", nic.port)}};
    block.nics.push_back({vertex, nic.rail, nic.card, nic.rate, Evidence::file});
  }
  return block;
}

}  // namespace

ImportedTopology read_ibnetdiscover(std::string_view text, const std::string& file) {
  Findings findings;
  const IbListing listing = read_ib_listing(text, file, findings);
  const IbTiers tiers = find_tiers(listing, file, findings);
  const std::vector<IbHost> hosts = find_hosts(listing, findings);
  if (hosts.size() > max_ib_hosts) {
    throw InputError({file, 0, ""}, fmt::format("{} hosts", hosts.size()),
                     fmt::format("at most {}", max_ib_hosts));
  }
  Topology topology;
  topology.name = "fabric of ibnetdiscover";
  topology.gpus_known = false;
  const std::vector<std::uint32_t> number_of = add_switches(listing, tiers, topology.network);
  add_cables(listing, tiers, number_of, topology.network);
  for (const IbHost& host : hosts) {
    topology.blocks.push_back(static_cast<std::uint32_t>(topology.types.size()));
    topology.types.push_back(block_of(host, listing));
    for (const IbNic& nic : host.nics)
      topology.switch_of_nic.push_back(nic.at ? number_of[*nic.at] : no_switch);
  }
  report_network(listing, tiers, findings);
  findings.add("gpus-not-in-file", "such a file lists adapters and switches, no GPUs, NVLink or PCIe");
  return {std::move(topology), findings.take()};
}

}  // namespace isthmus
