#include "model/topology/block_routes.hpp"

#include <algorithm>

#include "model/topology/host_paths.hpp"
#include "model/topology/own_nics.hpp"

namespace isthmus {
namespace {

using Paths = std::vector<std::optional<BlockPath>>;

class Finder {
 public:
  Finder(const Block& block, const BlockLinks& links, const std::vector<char>& plugged)
      : block_(block), links_(links), paths_(block) {
    routes_.domain = nvlink_domains(block);
    for (const std::uint32_t domain : routes_.domain) routes_.domains = std::max(routes_.domains, domain + 1);
    routes_.nic = own_nics(block, plugged);
    const std::size_t gpus = block.gpus.size();
    routes_.relays.assign(gpus, 0);
    routes_.leave.resize(gpus);
    routes_.enter.resize(gpus);
    routes_.inside.resize(gpus * gpus);
    routes_.over_nvlink.assign(gpus * gpus, 0);
  }

  BlockRoutes run() {
    for (std::uint32_t gpu = 0; gpu < block_.gpus.size(); ++gpu) {
      const Paths from_gpu = paths_.from(vertex_of(gpu));
      add_inside(gpu, from_gpu);
      if (routes_.nic[gpu]) add_network(gpu, from_gpu);
    }
    return std::move(routes_);
  }

 private:
  std::uint32_t vertex_of(std::uint32_t gpu) const { return block_.gpus[gpu].vertex; }
  bool share_host(std::uint32_t a, std::uint32_t b) const {
    return block_.vertices[vertex_of(a)].host == block_.vertices[vertex_of(b)].host;
  }

  void add_inside(std::uint32_t gpu, const Paths& from_gpu) {
    const Paths nvlink = paths_.nvlink_from(gpu);
    for (std::uint32_t to = 0; to < block_.gpus.size(); ++to) {
      if (to == gpu) continue;
      const std::size_t pair = std::size_t{gpu} * block_.gpus.size() + to;
      if (nvlink[to]) {
        routes_.inside[pair] = links_.along(block_, nvlink[to]->wires);
        routes_.over_nvlink[pair] = 1;
      } else if (share_host(gpu, to) && from_gpu[vertex_of(to)]) {
        routes_.inside[pair] = links_.along(block_, from_gpu[vertex_of(to)]->wires);
      }
    }
  }

  void add_network(std::uint32_t gpu, const Paths& from_gpu) {
    const std::uint32_t port = block_.nics[*routes_.nic[gpu]].vertex;
    const Paths from_port = paths_.from(port);
    if (!from_gpu[port] || !from_port[vertex_of(gpu)]) {
      routes_.nic[gpu].reset();
      return;
    }
    const std::optional<std::uint32_t> cpu = nearest_cpu(from_gpu);
    if (block_.gpus[gpu].gpudirect || !cpu) {
      routes_.relays[gpu] = from_gpu[port]->cost < through_cpu;
      routes_.leave[gpu] = links_.along(block_, from_gpu[port]->wires);
      routes_.enter[gpu] = links_.along(block_, from_port[vertex_of(gpu)]->wires);
      return;
    }
    const Paths from_cpu = paths_.from(*cpu);
    routes_.leave[gpu] = links_.along(block_, joined(from_gpu[*cpu], from_cpu[port]));
    routes_.enter[gpu] = links_.along(block_, joined(from_port[*cpu], from_cpu[vertex_of(gpu)]));
  }

  std::optional<std::uint32_t> nearest_cpu(const Paths& from_gpu) const {
    std::optional<std::uint32_t> nearest;
    for (std::uint32_t vertex = 0; vertex < block_.vertices.size(); ++vertex) {
      if (block_.vertices[vertex].kind != VertexKind::cpu || !from_gpu[vertex]) continue;
      if (!nearest || from_gpu[vertex]->cost < from_gpu[*nearest]->cost) nearest = vertex;
    }
    return nearest;
  }

  static std::vector<std::uint32_t> joined(const std::optional<BlockPath>& a,
                                           const std::optional<BlockPath>& b) {
    std::vector<std::uint32_t> wires = a ? a->wires : std::vector<std::uint32_t>{};
    if (b) wires.insert(wires.end(), b->wires.begin(), b->wires.end());
    return wires;
  }

  const Block& block_;
  const BlockLinks& links_;
  HostPaths paths_;
  BlockRoutes routes_;
};

}  // namespace

BlockRoutes find_routes(const Block& block, const BlockLinks& links, const std::vector<char>& plugged) {
  return Finder(block, links, plugged).run();
}

}  // namespace isthmus
