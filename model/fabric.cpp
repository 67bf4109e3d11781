#include "model/fabric.hpp"

#include <array>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/fabric_graph.hpp"
#include "model/fabric_parts.hpp"

namespace isthmus {

/// Everything is computed by the constructor and constant from then on: any number of threads may ask.
struct Fabric::State {
  explicit State(const FabricSpec& spec)
      : parts(describe(spec)),
        routes(find_routes(parts.block)),
        last_routes(parts.last ? find_routes(*parts.last) : BlockRoutes{}),
        pod_routes(find_pod_routes(parts)),
        links(make_links(parts)) {}

  struct Place {
    std::uint32_t block = 0, gpu = 0;  // block of the fabric, GPU of the block
  };

  Place place(GpuId gpu) const {
    ISTHMUS_ASSERT(gpu.value < parts.gpus(), "GPU {} of {}", gpu.value, parts.gpus());
    return {gpu.value / parts.block.gpus(), gpu.value % parts.block.gpus()};
  }
  const BlockRoutes& routes_of(std::uint32_t block) const {
    return parts.last && block + 1 == parts.blocks() ? last_routes : routes;
  }
  LinkId port(GpuId gpu, PortLink::Number which) const { return {gpu.value * PortLink::count + which}; }

  std::uint32_t leaf_of(Place at) const {
    const std::uint32_t nic = routes_of(at.block).nic[at.gpu];
    const std::uint32_t host = at.block * parts.block.hosts + nic / parts.block.gpus_per_host;
    return parts.network.leaf_of(host, nic % parts.block.gpus_per_host);
  }
  void append(std::vector<LinkId>& route, const BlockRoutes::Links& links_of_block,
              std::uint32_t block) const {
    for (const std::uint32_t link : links_of_block) route.push_back({block * parts.block.links() + link});
  }
  void append_switches(std::vector<LinkId>& route, std::uint32_t from_leaf, std::uint32_t to_leaf) const;

  FabricParts parts;
  BlockRoutes routes, last_routes;  // every block but perhaps the last, and the last
  std::vector<std::vector<LinkId>> pod_routes;
  std::vector<Link> links;
};

void Fabric::State::append_switches(std::vector<LinkId>& route, std::uint32_t from_leaf,
                                    std::uint32_t to_leaf) const {
  if (from_leaf == to_leaf) return;
  const PartNetwork& network = parts.network;
  const std::size_t pods = network.pods;
  const auto& between = pod_routes[network.pod_of(from_leaf) * pods + network.pod_of(to_leaf)];
  route.push_back({parts.leaf_link(from_leaf)});
  route.insert(route.end(), between.begin(), between.end());
  route.push_back({parts.leaf_link(to_leaf) + 1});
}

std::string_view to_string(LinkClass link_class) {
  constexpr std::array<std::string_view, 4> names{"nvlink", "pcie", "nic", "switch-uplink"};
  return names.at(static_cast<std::size_t>(link_class));
}

Fabric::Fabric(const FabricSpec& spec) : state_(std::make_unique<State>(spec)) {}
Fabric::~Fabric() = default;
Fabric::Fabric(Fabric&&) noexcept = default;
Fabric& Fabric::operator=(Fabric&&) noexcept = default;

std::size_t Fabric::host_count() const { return state_->parts.hosts; }
std::size_t Fabric::gpu_count() const { return state_->parts.gpus(); }
std::size_t Fabric::nic_count() const { return state_->parts.gpus(); }
std::size_t Fabric::gpus_per_host() const { return state_->parts.block.gpus_per_host; }

std::size_t Fabric::domain_count() const {
  const std::uint32_t last = state_->parts.blocks() - 1;
  return std::size_t{last} * state_->routes.domains + state_->routes_of(last).domains;
}

DomainId Fabric::domain_of(GpuId gpu) const {
  const auto at = state_->place(gpu);
  return {at.block * state_->routes.domains + state_->routes_of(at.block).domain[at.gpu]};
}

HostId Fabric::host_of(GpuId gpu) const {
  state_->place(gpu);
  return {gpu.value / state_->parts.block.gpus_per_host};
}

GpuId Fabric::gpu_at(HostId host, std::size_t local) const {
  ISTHMUS_ASSERT(host.index() < host_count() && local < gpus_per_host(), "GPU {} of host {}", local,
                 host.value);
  return {static_cast<std::uint32_t>(host.index() * gpus_per_host() + local)};
}

const std::vector<Link>& Fabric::links() const { return state_->links; }
std::optional<LinkId> Fabric::nvlink_out(GpuId gpu) const { return state_->port(gpu, PortLink::nvlink_out); }
std::optional<LinkId> Fabric::nvlink_in(GpuId gpu) const { return state_->port(gpu, PortLink::nvlink_in); }
LinkId Fabric::nic_out(GpuId gpu) const { return state_->port(gpu, PortLink::nic_out); }
LinkId Fabric::nic_in(GpuId gpu) const { return state_->port(gpu, PortLink::nic_in); }

std::vector<LinkId> Fabric::route(GpuId from, GpuId to) const {
  const auto a = state_->place(from), b = state_->place(to);
  const BlockRoutes& leaving = state_->routes_of(a.block);
  const BlockRoutes& entering = state_->routes_of(b.block);
  std::vector<LinkId> route;
  if (from == to) return route;
  route.reserve(8);  // the longest there is: PCIe, NIC, leaf, pod, and back
  if (domain_of(from) == domain_of(to)) {
    state_->append(route, leaving.inside[std::size_t{a.gpu} * leaving.nic.size() + b.gpu], a.block);
    return route;
  }
  state_->append(route, leaving.leave[a.gpu], a.block);
  state_->append_switches(route, state_->leaf_of(a), state_->leaf_of(b));
  state_->append(route, entering.enter[b.gpu], b.block);
  return route;
}

int Fabric::switch_hops(GpuId from, GpuId to) const {
  if (domain_of(from) == domain_of(to)) return 0;
  std::vector<LinkId> between;
  state_->append_switches(between, state_->leaf_of(state_->place(from)), state_->leaf_of(state_->place(to)));
  return static_cast<int>(between.size()) + 1;
}

FabricGraph Fabric::graph() const { return expand(state_->parts); }

}  // namespace isthmus
