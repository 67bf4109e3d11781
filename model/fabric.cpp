#include "model/fabric.hpp"

#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_graph.hpp"
#include "model/topology/block_routes.hpp"
#include "model/topology/network_routes.hpp"

namespace isthmus {
namespace {

/// One block of the fabric: where its things begin.
struct Placed {
  std::uint32_t type = 0, routes = 0;  // which links, which routes
  std::uint32_t host = 0, gpu = 0, nic = 0, domain = 0, link = 0;
};

/// A way through the network: the GPU whose NIC it leaves through, and the switches at both ends.
struct Crossing {
  std::uint32_t exit = 0;
  std::uint32_t from_switch = 0, to_switch = 0;
};

}  // namespace

/// Everything is computed by the constructor and constant from then on: any number of threads may ask.
struct Fabric::State {
  explicit State(Topology topology)
      : topology_(std::move(topology)), network_(topology_.network, topology_.routing) {
    for (const Block& block : topology_.types) block_links_.push_back(links_of(block));
    place_blocks();
    add_links();
  }

  void place_blocks();
  std::uint32_t routes_of(std::uint32_t type, std::uint32_t first_nic);
  void add_links();

  const Block& block(const Placed& placed) const { return topology_.types[placed.type]; }
  const Placed& at(GpuId gpu) const {
    ISTHMUS_ASSERT(gpu.value < block_of_gpu_.size(), "GPU {} of {}", gpu.value, block_of_gpu_.size());
    return blocks_[block_of_gpu_[gpu.value]];
  }
  const BlockVertex& vertex(const Placed& placed, std::uint32_t gpu) const {
    return block(placed).vertices[block(placed).gpus[gpu].vertex];
  }
  static void append(std::vector<LinkId>& route, const BlockRoutes::Links& links, const Placed& placed) {
    for (const std::uint32_t link : links) route.push_back({placed.link + link});
  }
  /// Links that join them within their block, if any do.
  const std::optional<BlockRoutes::Links>& inside(GpuId from, GpuId to) const;
  std::optional<std::uint32_t> relay(const Placed& placed, std::uint32_t gpu, const Placed& target,
                                     std::uint32_t target_gpu) const;
  std::optional<Crossing> crossing(GpuId from, GpuId to) const;
  std::optional<std::vector<LinkId>> route(GpuId from, GpuId to) const;
  /// What joins a GPU to its host: PCIe, C2C.
  std::vector<LinkId> host_links(const Placed& placed, std::uint32_t gpu, bool out) const;
  std::string name(GpuId gpu) const;

 private:
  friend class Fabric;
  Topology topology_;
  NetworkRoutes network_;
  std::vector<BlockLinks> block_links_;  // per type
  std::vector<BlockRoutes> routes_;      // per type and set of NICs that are plugged in
  std::map<std::pair<std::uint32_t, std::vector<char>>, std::uint32_t> routes_index_;
  std::vector<Placed> blocks_;
  std::vector<std::uint32_t> block_of_gpu_, block_of_host_, first_gpu_of_host_;
  std::uint32_t domains_ = 0, first_network_link_ = 0;
  std::vector<Link> links_;
  std::optional<BlockRoutes::Links> no_links_;
};

std::uint32_t Fabric::State::routes_of(std::uint32_t type, std::uint32_t first_nic) {
  const Block& block = topology_.types[type];
  std::vector<char> plugged(block.nics.size());
  for (std::size_t nic = 0; nic < plugged.size(); ++nic) {
    plugged[nic] = topology_.switch_of_nic[first_nic + nic] != no_switch;
  }
  const auto [known, is_new] =
      routes_index_.try_emplace({type, plugged}, static_cast<std::uint32_t>(routes_.size()));
  if (is_new) routes_.push_back(find_routes(block, block_links_[type], plugged));
  return known->second;
}

void Fabric::State::place_blocks() {
  Placed next;
  for (const std::uint32_t type : topology_.blocks) {
    const Block& block = topology_.types[type];
    next.type = type;
    next.routes = routes_of(type, next.nic);
    const auto number = static_cast<std::uint32_t>(blocks_.size());
    std::vector<std::uint32_t> gpus_of_host(block.hosts, 0);
    for (const BlockGpu& gpu : block.gpus) ++gpus_of_host[block.vertices[gpu.vertex].host.value_or(0)];
    std::uint32_t first_gpu = next.gpu;
    for (const std::uint32_t gpus : gpus_of_host) {
      block_of_host_.push_back(number);
      first_gpu_of_host_.push_back(first_gpu);
      first_gpu += gpus;
    }
    block_of_gpu_.insert(block_of_gpu_.end(), block.gpus.size(), number);
    blocks_.push_back(next);
    next.host += block.hosts;
    next.gpu += static_cast<std::uint32_t>(block.gpus.size());
    next.nic += static_cast<std::uint32_t>(block.nics.size());
    next.domain += routes_[next.routes].domains;
    next.link += static_cast<std::uint32_t>(block_links_[type].links.size());
  }
  first_gpu_of_host_.push_back(next.gpu);
  domains_ = next.domain;
  first_network_link_ = next.link;
}

void Fabric::State::add_links() {
  links_.reserve(first_network_link_ + network_.links().size());
  for (std::uint32_t number = 0; number < blocks_.size(); ++number) {
    const Placed& placed = blocks_[number];
    for (const BlockLink& link : block_links_[placed.type].links) {
      links_.push_back({link.host ? fmt::format("{} on host {}", link.name, placed.host + *link.host)
                                  : fmt::format("{} of rack {}", link.name, number),
                        link.link_class, link.nominal});
    }
  }
  links_.insert(links_.end(), network_.links().begin(), network_.links().end());
}

/// The GPU of the sender's host through whose NIC a message leaves: the sender itself, or with PXN the one
/// on the destination's rail, or any near NIC for a sender that has none.
std::optional<std::uint32_t> Fabric::State::relay(const Placed& placed, std::uint32_t gpu,
                                                  const Placed& target, std::uint32_t target_gpu) const {
  const BlockRoutes& routes = routes_[placed.routes];
  const std::optional<std::uint32_t> own = routes.nic[gpu] ? std::optional(gpu) : std::nullopt;
  if (!topology_.routing.pxn) return own;
  const std::size_t gpus = routes.nic.size();
  const auto rail_of = [this](const Placed& at, std::uint32_t each) {
    const std::optional<std::uint32_t> nic = routes_[at.routes].nic[each];
    return nic ? block(at).nics[*nic].rail : vertex(at, each).index;
  };
  const auto helps = [&](std::uint32_t other) {
    return routes.relays[other] && vertex(placed, other).host == vertex(placed, gpu).host &&
           (other == gpu || routes.over_nvlink[std::size_t{gpu} * gpus + other]);
  };
  const std::uint32_t rail = rail_of(target, target_gpu);
  if (helps(gpu) && rail_of(placed, gpu) == rail) return gpu;
  std::vector<std::uint32_t> near;
  for (std::uint32_t other = 0; other < gpus; ++other) {
    if (!helps(other)) continue;
    if (rail_of(placed, other) == rail) return other;
    near.push_back(other);
  }
  if (routes.relays[gpu] || near.empty()) return own;
  return near[vertex(placed, gpu).index % near.size()];
}

const std::optional<BlockRoutes::Links>& Fabric::State::inside(GpuId from, GpuId to) const {
  const Placed &a = at(from), &b = at(to);
  if (&a != &b) return no_links_;
  const BlockRoutes& routes = routes_[a.routes];
  return routes.inside[(from.value - a.gpu) * routes.nic.size() + (to.value - a.gpu)];
}

std::optional<Crossing> Fabric::State::crossing(GpuId from, GpuId to) const {
  const Placed &a = at(from), &b = at(to);
  const std::uint32_t target = to.value - b.gpu;
  const std::optional<std::uint32_t> exit = relay(a, from.value - a.gpu, b, target);
  const std::optional<std::uint32_t> entry = routes_[b.routes].nic[target];
  if (!exit || !entry) return std::nullopt;
  return Crossing{*exit, topology_.switch_of_nic[a.nic + *routes_[a.routes].nic[*exit]],
                  topology_.switch_of_nic[b.nic + *entry]};
}

std::optional<std::vector<LinkId>> Fabric::State::route(GpuId from, GpuId to) const {
  std::vector<LinkId> route;
  if (from == to) return route;
  const Placed &a = at(from), &b = at(to);
  route.reserve(10);  // the longest of a preset: relay, PCIe, NIC, leaf, pod, and back
  if (const auto& links = inside(from, to)) {
    append(route, *links, a);
    return route;
  }
  const std::optional<Crossing> crossing = this->crossing(from, to);
  if (!crossing) return std::nullopt;
  const std::uint64_t pair = std::uint64_t{from.value} << 32 | to.value;
  const auto between = network_.route(crossing->from_switch, crossing->to_switch, pair);
  if (!between) return std::nullopt;
  const BlockRoutes& leaving = routes_[a.routes];
  const std::uint32_t gpu = from.value - a.gpu;
  if (crossing->exit != gpu) append(route, *leaving.inside[gpu * leaving.nic.size() + crossing->exit], a);
  append(route, leaving.leave[crossing->exit], a);
  for (const std::uint32_t link : *between) route.push_back({first_network_link_ + link});
  append(route, routes_[b.routes].enter[to.value - b.gpu], b);
  return route;
}

std::vector<LinkId> Fabric::State::host_links(const Placed& placed, std::uint32_t gpu, bool out) const {
  const Block& block = this->block(placed);
  const std::uint32_t vertex = block.gpus[gpu].vertex;
  std::vector<LinkId> links;
  for (std::size_t w = 0; w < block.wires.size(); ++w) {
    const BlockWire& wire = block.wires[w];
    if (wire.kind == WireKind::nvlink || (out ? wire.from : wire.to) != vertex) continue;
    links.push_back({placed.link + block_links_[placed.type].of_wire[w]});
  }
  return links;
}

std::string Fabric::State::name(GpuId gpu) const {
  const Placed& placed = at(gpu);
  const BlockVertex& each = vertex(placed, gpu.value - placed.gpu);
  return fmt::format("GPU {} on host {}", each.index, placed.host + each.host.value_or(0));
}

std::string_view to_string(LinkClass link_class) {
  constexpr std::array<std::string_view, 4> names{"nvlink", "pcie", "nic", "switch-uplink"};
  return names.at(static_cast<std::size_t>(link_class));
}

Fabric::Fabric(Topology topology) : state_(std::make_unique<State>(std::move(topology))) {}
Fabric::Fabric(const FabricSpec& spec, const std::filesystem::path& directory)
    : Fabric(build_topology(spec, directory)) {}
Fabric::~Fabric() = default;
Fabric::Fabric(Fabric&&) noexcept = default;
Fabric& Fabric::operator=(Fabric&&) noexcept = default;

const Topology& Fabric::topology() const { return state_->topology_; }
std::size_t Fabric::host_count() const { return state_->block_of_host_.size(); }
std::size_t Fabric::gpu_count() const { return state_->block_of_gpu_.size(); }
std::size_t Fabric::domain_count() const { return state_->domains_; }

std::size_t Fabric::gpus_on(HostId host) const {
  ISTHMUS_ASSERT(host.value < host_count(), "host {} of {}", host.value, host_count());
  return state_->first_gpu_of_host_[host.index() + 1] - state_->first_gpu_of_host_[host.index()];
}

DomainId Fabric::domain_of(GpuId gpu) const {
  const Placed& placed = state_->at(gpu);
  return {placed.domain + state_->routes_[placed.routes].domain[gpu.value - placed.gpu]};
}

HostId Fabric::host_of(GpuId gpu) const {
  const Placed& placed = state_->at(gpu);
  return {placed.host + state_->vertex(placed, gpu.value - placed.gpu).host.value_or(0)};
}

GpuId Fabric::gpu_at(HostId host, std::size_t local) const {
  ISTHMUS_ASSERT(host.value < host_count() && local < gpus_on(host), "GPU {} on host {}", local, host.value);
  return {static_cast<std::uint32_t>(state_->first_gpu_of_host_[host.index()] + local)};
}

const std::vector<Link>& Fabric::links() const { return state_->links_; }

namespace {

std::optional<LinkId> placed_link(std::uint32_t first, std::optional<std::uint32_t> link) {
  return link ? std::optional(LinkId{first + *link}) : std::nullopt;
}

}  // namespace

std::optional<LinkId> Fabric::nvlink_out(GpuId gpu) const {
  const Placed& at = state_->at(gpu);
  return placed_link(at.link, state_->block_links_[at.type].nvlink[gpu.value - at.gpu].out);
}

std::optional<LinkId> Fabric::nvlink_in(GpuId gpu) const {
  const Placed& at = state_->at(gpu);
  return placed_link(at.link, state_->block_links_[at.type].nvlink[gpu.value - at.gpu].in);
}

std::optional<LinkId> Fabric::nic_out(GpuId gpu) const {
  const Placed& at = state_->at(gpu);
  const std::optional<std::uint32_t> nic = state_->routes_[at.routes].nic[gpu.value - at.gpu];
  return nic ? placed_link(at.link, state_->block_links_[at.type].nic[*nic].out) : std::nullopt;
}

std::optional<LinkId> Fabric::nic_in(GpuId gpu) const {
  const Placed& at = state_->at(gpu);
  const std::optional<std::uint32_t> nic = state_->routes_[at.routes].nic[gpu.value - at.gpu];
  return nic ? placed_link(at.link, state_->block_links_[at.type].nic[*nic].in) : std::nullopt;
}

std::optional<std::uint32_t> Fabric::switch_of(GpuId gpu) const {
  const Placed& at = state_->at(gpu);
  const std::optional<std::uint32_t> nic = state_->routes_[at.routes].nic[gpu.value - at.gpu];
  return nic ? std::optional(topology().switch_of_nic[at.nic + *nic]) : std::nullopt;
}

std::vector<LinkId> Fabric::exit_links(GpuId gpu, bool out) const {
  const Placed& at = state_->at(gpu);
  const BlockRoutes& routes = state_->routes_[at.routes];
  const std::uint32_t local = gpu.value - at.gpu;
  const std::size_t gpus = routes.nic.size();
  for (std::size_t other = 0; other < gpus; ++other) {
    const std::size_t pair = out ? local * gpus + other : other * gpus + local;
    if (routes.inside[pair] && routes.over_nvlink[pair] == 0) return state_->host_links(at, local, out);
  }
  const std::optional<LinkId> nic = out ? nic_out(gpu) : nic_in(gpu);
  return nic ? std::vector{*nic} : std::vector<LinkId>{};
}

bool Fabric::reachable(GpuId from, GpuId to) const { return state_->route(from, to).has_value(); }

std::vector<LinkId> Fabric::route(GpuId from, GpuId to) const {
  std::optional<std::vector<LinkId>> route = state_->route(from, to);
  if (route) return std::move(*route);
  throw InputError(Location{{}, 0, "fabric"},
                   fmt::format("no way from {} to {}", state_->name(from), state_->name(to)),
                   "a fabric that joins them (NICs, leaves and up-links that are there)");
}

int Fabric::switch_hops(GpuId from, GpuId to) const {
  if (from == to || state_->inside(from, to)) return 0;
  route(from, to);  // raises where there is none
  const std::optional<Crossing> crossing = state_->crossing(from, to);
  return *state_->network_.hops(crossing->from_switch, crossing->to_switch);
}

FabricGraph Fabric::graph() const {
  FabricGraph graph;
  const Topology& topology = state_->topology_;
  std::vector<std::uint32_t> nic_vertices;
  for (std::uint32_t number = 0; number < state_->blocks_.size(); ++number) {
    const Placed& placed = state_->blocks_[number];
    const auto first = static_cast<std::uint32_t>(graph.vertices.size());
    const Block& block = state_->block(placed);
    for (const BlockVertex& vertex : block.vertices) {
      const std::string name = vertex_name(vertex);
      graph.vertices.push_back(
          {vertex.kind, vertex.host ? fmt::format("{} on host {}", name, placed.host + *vertex.host)
                                    : fmt::format("{} of rack {}", name, number)});
    }
    const std::vector<std::uint32_t>& of_wire = state_->block_links_[placed.type].of_wire;
    for (std::size_t w = 0; w < block.wires.size(); ++w) {
      const BlockWire& wire = block.wires[w];
      graph.edges.push_back(
          {first + wire.from, first + wire.to, wire.wires, wire.rate, LinkId{placed.link + of_wire[w]}});
    }
    for (const BlockNic& nic : block.nics) nic_vertices.push_back(first + nic.vertex);
  }
  const auto first_switch = static_cast<std::uint32_t>(graph.vertices.size());
  for (const NetworkSwitch& each : topology.network.switches)
    graph.vertices.push_back({each.tier, each.name});
  for (const Placed& placed : state_->blocks_) {
    const Block& block = state_->block(placed);
    for (std::uint32_t nic = 0; nic < block.nics.size(); ++nic) {
      const std::uint32_t at_switch = topology.switch_of_nic[placed.nic + nic];
      if (at_switch == no_switch) continue;
      const BlockLinks::Port& port = state_->block_links_[placed.type].nic[nic];
      const std::uint32_t vertex = nic_vertices[placed.nic + nic], leaf = first_switch + at_switch;
      graph.edges.push_back({vertex, leaf, 1, block.nics[nic].rate, LinkId{placed.link + *port.out}});
      graph.edges.push_back({leaf, vertex, 1, block.nics[nic].rate, LinkId{placed.link + *port.in}});
    }
  }
  for (std::uint32_t cable = 0; cable < topology.network.cables.size(); ++cable) {
    const NetworkCable& each = topology.network.cables[cable];
    const std::uint32_t link = state_->first_network_link_ + state_->network_.cable_link(cable);
    const bool hashed = topology.routing.hashed;
    for (std::uint32_t wire = 0; wire < (hashed ? each.wires : 1); ++wire) {
      const std::uint32_t wires = hashed ? 1 : each.wires;
      const Bandwidth rate = each.wire * wires;
      const std::uint32_t low = first_switch + each.low, high = first_switch + each.high;
      graph.edges.push_back({low, high, wires, rate, LinkId{link + 2 * wire}});
      graph.edges.push_back({high, low, wires, rate, LinkId{link + 2 * wire + 1}});
    }
  }
  return graph;
}

}  // namespace isthmus
