#include "model/topology/bisection.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "model/fabric_paths.hpp"

namespace isthmus {
namespace {

using Colour = std::uint32_t;

/// Leaves room for the sum of both ends.
constexpr std::int64_t most_capacity = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t bounded(Int128 capacity) {
  return static_cast<std::int64_t>(std::min<Int128>(capacity, most_capacity));
}

struct SwitchPorts {
  Int128 first = 0, second = 0;  // rates of the NICs of both halves
};

struct Bisected {
  std::vector<SwitchPorts> ports;  // per switch
  bool known = true;               // no rate is 0
};

Bisected bisect(const Topology& topology) {
  Bisected result;
  result.ports.resize(topology.network.switches.size());
  std::uint64_t hosts = 0, host = 0;
  for (const std::uint32_t type : topology.blocks) hosts += topology.types[type].hosts;
  std::size_t number = 0;
  for (const std::uint32_t type : topology.blocks) {
    const Block& block = topology.types[type];
    for (const BlockNic& nic : block.nics) {
      const std::uint32_t place = topology.switch_of_nic[number++];
      if (place == no_switch) continue;
      const bool first = host + *block.vertices[nic.vertex].host < hosts / 2;
      (first ? result.ports[place].first : result.ports[place].second) += nic.rate.value;
      result.known = result.known && nic.rate > Bandwidth{0};
    }
    host += block.hosts;
  }
  for (const NetworkCable& cable : topology.network.cables)
    result.known = result.known && cable.wire > Bandwidth{0};
  Int128 sum = 0;
  for (const SwitchPorts& each : result.ports) sum += each.first + each.second;
  result.known = result.known && hosts >= 2 && !topology.network.switches.empty() && sum <= most_capacity;
  return result;
}

/// Cables of each switch: the other end and the capacity per direction.
using Neighbours = std::vector<std::vector<std::pair<std::uint32_t, Int128>>>;

Neighbours neighbours_of(const Network& network) {
  Neighbours neighbours(network.switches.size());
  for (const NetworkCable& cable : network.cables) {
    const Int128 capacity = Int128{cable.wire.value} * cable.wires;
    neighbours[cable.low].emplace_back(cable.high, capacity);
    neighbours[cable.high].emplace_back(cable.low, capacity);
  }
  return neighbours;
}

/// Numbers the distinct signatures in the order of their first switch.
template <class Signature>
std::vector<Colour> number(const std::vector<Signature>& signatures, std::size_t& count) {
  std::map<Signature, Colour> numbers;
  std::vector<Colour> colours;
  for (const Signature& signature : signatures)
    colours.push_back(numbers.emplace(signature, static_cast<Colour>(numbers.size())).first->second);
  count = numbers.size();
  return colours;
}

/// Classes of switches with equal capacity to every class; each switch alone when that takes too long.
std::vector<Colour> equitable_classes(const std::vector<SwitchPorts>& ports, const Neighbours& neighbours) {
  constexpr int most_rounds = 32;
  std::vector<std::pair<Int128, Int128>> own;
  for (const SwitchPorts& each : ports) own.emplace_back(each.first, each.second);
  std::size_t count = 0;
  std::vector<Colour> colours = number(own, count);
  for (int round = 0; round < most_rounds; ++round) {
    using Signature = std::pair<Colour, std::vector<std::pair<Colour, Int128>>>;
    std::vector<Signature> signatures(ports.size());
    for (std::size_t i = 0; i < ports.size(); ++i) {
      signatures[i].first = colours[i];
      std::vector<std::pair<Colour, Int128>> reach;
      for (const auto& [other, capacity] : neighbours[i]) reach.emplace_back(colours[other], capacity);
      std::sort(reach.begin(), reach.end());
      for (const auto& [colour, capacity] : reach) {
        auto& sums = signatures[i].second;
        if (sums.empty() || sums.back().first != colour) sums.emplace_back(colour, 0);
        sums.back().second += capacity;
      }
    }
    std::size_t finer = 0;
    colours = number(signatures, finer);
    if (finer == count) return colours;
    count = finer;
  }
  for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = static_cast<Colour>(i);
  return colours;
}

std::vector<FlowArc> merged_arcs(const std::vector<SwitchPorts>& ports, const Neighbours& neighbours,
                                 const std::vector<Colour>& colours, Colour classes) {
  std::map<std::pair<Colour, Colour>, Int128> capacities;
  const Colour source = classes, target = classes + 1;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    capacities[{source, colours[i]}] += ports[i].first;
    capacities[{colours[i], target}] += ports[i].second;
    for (const auto& [other, capacity] : neighbours[i])
      if (colours[i] != colours[other]) capacities[{colours[i], colours[other]}] += capacity;
  }
  std::vector<FlowArc> arcs;
  for (const auto& [ends, capacity] : capacities)
    if (capacity > 0) arcs.push_back({ends.first, ends.second, bounded(capacity)});
  return arcs;
}

}  // namespace

std::optional<Bandwidth> bisection_bandwidth(const Topology& topology) {
  const Bisected halves = bisect(topology);
  if (!halves.known) return std::nullopt;
  const Neighbours neighbours = neighbours_of(topology.network);
  const std::vector<Colour> colours = equitable_classes(halves.ports, neighbours);
  const Colour classes = *std::max_element(colours.begin(), colours.end()) + 1;
  const std::vector<FlowArc> arcs = merged_arcs(halves.ports, neighbours, colours, classes);
  if (arcs.size() > max_flow_arcs) return std::nullopt;
  return Bandwidth{maximum_flow(classes + 2, arcs, classes, classes + 1)};
}

}  // namespace isthmus
