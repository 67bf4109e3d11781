#include "model/topology/findings.hpp"

#include <algorithm>

#include "model/topology/finding_list.hpp"

namespace isthmus {
namespace {

/// Each type that stands anywhere, with its first block.
std::vector<BlockFindings> types_in_use(const Topology& topology) {
  constexpr std::size_t nowhere = ~std::size_t{0};
  const std::vector<BlockPlace> places = block_places(topology);
  std::vector<std::size_t> first(topology.types.size(), nowhere);
  std::vector<std::uint64_t> times(topology.types.size());
  for (std::size_t i = 0; i < topology.blocks.size(); ++i) {
    const std::uint32_t type = topology.blocks[i];
    if (times[type]++ == 0) first[type] = i;
  }
  std::vector<BlockFindings> types;
  for (std::size_t type = 0; type < first.size(); ++type) {
    if (first[type] == nowhere) continue;
    types.push_back({topology.types[type], places[first[type]], times[type], places.back().host > 1});
  }
  return types;
}

std::vector<std::uint64_t> gpus_per_host(const Block& block) {
  std::vector<std::uint64_t> gpus(block.hosts);
  for (const BlockGpu& gpu : block.gpus) ++gpus[*block.vertices[gpu.vertex].host];
  return gpus;
}

/// Hosts with fewer GPUs than most; hosts without any are no GPU hosts.
void find_short_hosts(const std::vector<BlockFindings>& types, FindingList& findings) {
  Peers<std::uint64_t> peers;
  for (const BlockFindings& type : types)
    for (const std::uint64_t gpus : gpus_per_host(type.block))
      if (gpus > 0) peers.add(gpus, type.times);
  const auto usual = peers.usual(2);
  if (!usual) return;
  for (const BlockFindings& type : types) {
    const std::vector<std::uint64_t> gpus = gpus_per_host(type.block);
    for (std::uint32_t host = 0; host < gpus.size(); ++host) {
      if (gpus[host] == 0 || gpus[host] >= *usual) continue;
      findings.add("host-with-fewer-gpus", [&] {
        return fmt::format("{} has {} GPUs, most hosts {}{}", type.host_name(host), gpus[host], *usual,
                           type.elsewhere());
      });
    }
  }
}

/// Ports of one rate in most of the fabric.
void find_odd_ports(const std::vector<BlockFindings>& types, FindingList& findings) {
  Peers<Bandwidth> peers;
  for (const BlockFindings& type : types)
    for (const BlockNic& nic : type.block.nics)
      if (nic.rate > Bandwidth{0}) peers.add(nic.rate, type.times);
  const auto usual = peers.usual(3);
  if (!usual) return;
  for (const BlockFindings& type : types) {
    for (const BlockNic& nic : type.block.nics) {
      if (nic.rate == *usual || nic.rate == Bandwidth{0}) continue;
      findings.add("odd-link-rate", [&] {
        return fmt::format("{} runs at {}, most NICs at {}{}", type.name(nic.vertex), rate_text(nic.rate),
                           rate_text(*usual), type.elsewhere());
      });
    }
  }
}

}  // namespace

std::vector<Finding> topology_findings(const Topology& topology, std::size_t most_per_code) {
  FindingList findings(most_per_code);
  const std::vector<BlockFindings> types = types_in_use(topology);
  for (const BlockFindings& type : types) find_in_block(type, findings);
  find_short_hosts(types, findings);
  find_in_network(topology, findings);
  find_odd_ports(types, findings);
  for (const BlockFindings& type : types) find_in_rates(type, findings);
  return findings.take();
}

}  // namespace isthmus
