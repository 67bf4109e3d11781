// The streams of a traffic scenario (model/traffic_rules.hpp).

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/traffic_channels.hpp"
#include "model/traffic_rules.hpp"

namespace isthmus {
namespace {

GpuId gpu_of(int number) { return {static_cast<std::uint32_t>(number)}; }

/// Adds a hop to a stream.
void add_hop(const Fabric& fabric, GpuId from, GpuId to, TrafficStream& stream) {
  for (const LinkId link : fabric.route(from, to)) stream.links.push_back(link);
  stream.network = stream.network || fabric.switch_hops(from, to) > 0;
}

TrafficStream flow_stream(const Fabric& fabric, GpuId from, GpuId to, Bytes bytes) {
  TrafficStream stream;
  stream.name = fmt::format("GPU {} to GPU {}", from.value, to.value);
  stream.bytes = bytes;
  add_hop(fabric, from, to, stream);
  return stream;
}

/// The share of one ring of `rings` over each hop, rounded up.
Bytes ring_bytes(Bytes bytes, std::size_t gpus, std::size_t rings) {
  const Int128 whole = Int128{bytes.value} * 2 * static_cast<std::int64_t>(gpus - 1);
  const Int128 parts = Int128{static_cast<std::int64_t>(gpus)} * static_cast<std::int64_t>(rings);
  return {static_cast<std::int64_t>((whole + parts - 1) / parts)};
}

TrafficStream ring_stream(const Fabric& fabric, const std::vector<GpuId>& stops, std::size_t number) {
  TrafficStream stream;
  stream.name = fmt::format("ring {}", number);
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const GpuId next = stops[(i + 1) % stops.size()];
    if (next != stops[i]) add_hop(fabric, stops[i], next, stream);
  }
  return stream;
}

/// The first GPU of each NIC that the domain's GPUs use, in their order.
std::vector<GpuId> nic_leaders(const Fabric& fabric, const TrafficDomain& domain) {
  std::map<std::uint32_t, GpuId> leader;  // by the NIC's link
  std::vector<GpuId> leaders;
  for (const GpuId gpu : domain.gpus) {
    const std::optional<LinkId> nic = fabric.nic_out(gpu);
    if (nic && leader.try_emplace(nic->value, gpu).second) leaders.push_back(gpu);
  }
  return leaders;
}

/// A domain's GPUs from the leader round back to it: the ring leaves where it entered.
void visit(const TrafficDomain& domain, GpuId leader, std::vector<GpuId>& stops) {
  const auto at = std::find(domain.gpus.begin(), domain.gpus.end(), leader);
  stops.insert(stops.end(), at, domain.gpus.end());
  stops.insert(stops.end(), domain.gpus.begin(), at);
  if (domain.gpus.size() > 1) stops.push_back(leader);
}

std::vector<TrafficStream> all_reduce(const Fabric& fabric, const std::vector<GpuId>& gpus, Bytes bytes) {
  const std::vector<TrafficDomain> domains = traffic_domains(fabric, gpus);
  std::vector<std::vector<GpuId>> leaders;
  std::size_t rings = 1;
  for (const TrafficDomain& domain : domains) {
    leaders.push_back(nic_leaders(fabric, domain));
    if (leaders.back().empty()) leaders.back().push_back(domain.gpus.front());
    if (domains.size() > 1) rings = std::max(rings, leaders.back().size());
  }
  std::vector<TrafficStream> streams;
  for (std::size_t ring = 0; ring < rings; ++ring) {
    std::vector<GpuId> stops = gpus;
    if (domains.size() > 1) stops.clear();
    for (std::size_t d = 0; domains.size() > 1 && d < domains.size(); ++d) {
      visit(domains[d], leaders[d][ring % leaders[d].size()], stops);
    }
    streams.push_back(ring_stream(fabric, stops, ring));
    streams.back().bytes = ring_bytes(bytes, gpus.size(), rings);
    streams.back().hops = static_cast<std::uint32_t>(gpus.size());
  }
  return streams;
}

std::vector<TrafficStream> stated_rings(const Fabric& fabric, const TrafficSpec& spec) {
  std::vector<TrafficStream> streams;
  for (const std::vector<int>& ring : spec.rings) {
    std::vector<GpuId> stops;
    for (const int gpu : ring) stops.push_back(gpu_of(gpu));
    streams.push_back(ring_stream(fabric, stops, streams.size()));
    streams.back().bytes = ring_bytes(spec.bytes, ring.size(), spec.rings.size());
    streams.back().hops = static_cast<std::uint32_t>(ring.size());
  }
  return streams;
}

}  // namespace

std::vector<TrafficStream> traffic_streams(const Fabric& fabric, const TrafficSpec& spec) {
  if (spec.pattern == TrafficPattern::rings) return stated_rings(fabric, spec);
  if (spec.pattern == TrafficPattern::all_reduce) return all_reduce(fabric, traffic_gpus(spec), spec.bytes);
  std::vector<TrafficStream> streams;
  for (const TrafficFlow& flow : spec.flows) {
    streams.push_back(
        flow_stream(fabric, gpu_of(flow.from), gpu_of(flow.to), flow.bytes.value_or(spec.bytes)));
  }
  const std::size_t count = spec.gpus.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t others = spec.pattern == TrafficPattern::shift ? 1 : count - 1;
    for (std::size_t step = 1; step <= others; ++step) {
      streams.push_back(
          flow_stream(fabric, gpu_of(spec.gpus[i]), gpu_of(spec.gpus[(i + step) % count]), spec.bytes));
    }
  }
  return streams;
}

}  // namespace isthmus
