#include "model/topology/summary.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "model/topology/bisection.hpp"
#include "model/topology/block_analysis.hpp"

namespace isthmus {
namespace {

using Counts = std::map<std::optional<Bandwidth>, std::uint64_t>;

std::vector<RateCount> listed(const Counts& counts) {
  std::vector<RateCount> list;
  for (const auto& [rate, count] : counts) list.push_back({rate, count});
  return list;
}

/// One type at a time, times the number of its blocks.
void add_blocks(const Topology& topology, TopologySummary& summary) {
  std::vector<std::uint64_t> times(topology.types.size());
  for (const std::uint32_t type : topology.blocks) ++times[type];
  Counts nvlink, host, nic;
  std::set<std::uint32_t> rails;
  std::uint64_t gpus = 0, domains = 0, ends = 0;
  bool nvlink_known = topology.gpus_known;
  for (std::size_t i = 0; i < topology.types.size(); ++i) {
    if (times[i] == 0) continue;
    const Block& block = topology.types[i];
    const BlockAnalysis analysis = analyse(block);
    summary.hosts += times[i] * block.hosts;
    summary.nics += times[i] * block.nics.size();
    gpus += times[i] * block.gpus.size();
    domains += times[i] * analysis.domains;
    ends += times[i] * analysis.nvlink_ends;
    nvlink_known = nvlink_known && block.nvlink_known;
    for (const BlockNic& each : block.nics) rails.insert(each.rail);
    for (const GpuAnalysis& gpu : analysis.gpus) {
      nvlink[gpu.nvlink] += times[i];
      host[gpu.host] += times[i];
      nic[gpu.nic] += times[i];
    }
  }
  summary.blocks = topology.blocks.size();
  summary.rails = rails.size();
  if (topology.gpus_known) summary.gpus = gpus;
  if (nvlink_known) summary.nvlink_domains = domains;
  if (nvlink_known) summary.nvlinks = ends;
  summary.nvlink_per_gpu = listed(nvlink);
  summary.host_per_gpu = listed(host);
  summary.nic_per_gpu = listed(nic);
}

struct LeafRates {
  Int128 down = 0, up = 0;
  bool known = true;

  void add(Int128& sum, Bandwidth rate, std::uint32_t wires) {
    sum += Int128{rate.value} * wires;
    known = known && rate > Bandwidth{0};
  }
};

void add_network(const Topology& topology, TopologySummary& summary) {
  const Network& network = topology.network;
  for (const NetworkSwitch& each : network.switches)
    ++summary.switches[static_cast<std::size_t>(each.tier) - static_cast<std::size_t>(VertexKind::leaf)];
  std::vector<LeafRates> rates(network.switches.size());
  for (const NetworkCable& cable : network.cables) {
    summary.switch_cables += cable.wires;
    rates[cable.low].add(rates[cable.low].up, cable.wire, cable.wires);
  }
  std::size_t number = 0;
  for (const std::uint32_t type : topology.blocks) {
    for (const BlockNic& nic : topology.types[type].nics) {
      const std::uint32_t place = topology.switch_of_nic[number++];
      if (place == no_switch) {
        ++summary.unplugged_nics;
      } else {
        ++summary.host_cables;
        rates[place].add(rates[place].down, nic.rate, 1);
      }
    }
  }
  std::map<double, std::uint64_t> ratios;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const LeafRates& leaf = rates[i];
    if (network.switches[i].tier != VertexKind::leaf || !leaf.known || leaf.down == 0 || leaf.up == 0)
      continue;
    ++ratios[static_cast<double>(leaf.down) / static_cast<double>(leaf.up)];
  }
  for (const auto& [ratio, count] : ratios) summary.leaf_oversubscription.push_back({ratio, count});
}

}  // namespace

TopologySummary summarise(const Topology& topology) {
  TopologySummary summary;
  add_blocks(topology, summary);
  add_network(topology, summary);
  summary.bisection = bisection_bandwidth(topology);
  return summary;
}

}  // namespace isthmus
