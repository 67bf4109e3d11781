#include "planner/network_parts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "model/fabric_graph.hpp"

namespace isthmus {
namespace {

/// The lowest switch that each one hangs together with over cables that end at or below a tier.
std::vector<std::uint32_t> joined_below(const Network& network, VertexKind tier) {
  std::vector<std::uint32_t> root(network.switches.size());
  std::iota(root.begin(), root.end(), 0u);
  const auto find = [&root](std::uint32_t each) {
    while (root[each] != each) each = root[each] = root[root[each]];
    return each;
  };
  for (const NetworkCable& cable : network.cables) {
    if (network.switches[cable.high].tier > tier) continue;
    const std::uint32_t low = find(cable.low), high = find(cable.high);
    root[std::max(low, high)] = std::min(low, high);
  }
  for (std::uint32_t each = 0; each < root.size(); ++each) root[each] = find(each);
  return root;
}

class PartFinder {
 public:
  explicit PartFinder(const Fabric& fabric) : fabric_(fabric), network_(fabric.topology().network) {
    const FabricGraph graph = fabric.graph();
    const auto first = static_cast<std::uint32_t>(graph.vertices.size() - network_.switches.size());
    for (const FabricEdge& edge : graph.edges) {
      if (edge.from >= first && edge.to >= first)
        cables_.push_back({edge.from - first, edge.to - first, edge.link});
    }
    for (std::uint32_t gpu = 0; gpu < fabric.gpu_count(); ++gpu) at_.push_back(fabric.switch_of(GpuId{gpu}));
  }

  void add_tier(VertexKind tier) {
    const std::vector<std::uint32_t> root = joined_below(network_, tier);
    std::vector<std::uint32_t> switches(root.size(), 0);
    std::vector<char> reaches_tier(root.size(), 0);
    for (std::uint32_t each = 0; each < root.size(); ++each) {
      ++switches[root[each]];
      if (network_.switches[each].tier == tier) reaches_tier[root[each]] = 1;
    }
    std::vector<NetworkPart> part_of(root.size());
    for (std::uint32_t gpu = 0; gpu < at_.size(); ++gpu) {
      if (at_[gpu] && *at_[gpu] < root.size()) part_of[root[*at_[gpu]]].gpus.push_back(gpu);
    }
    for (const Cable& cable : cables_) {
      if (root[cable.from] == root[cable.to]) continue;
      part_of[root[cable.from]].out.push_back(cable.link);
      part_of[root[cable.to]].in.push_back(cable.link);
    }
    for (std::uint32_t each = 0; each < root.size(); ++each) {
      NetworkPart& part = part_of[each];
      if (reaches_tier[each] == 0 || part.in.empty() || part.gpus.empty()) continue;
      if (part.gpus.size() == at_.size()) continue;
      part.tier = tier;
      part.name = network_.switches[each].name;
      if (switches[each] > 1) part.name += fmt::format(" and {} switches joined to it", switches[each] - 1);
      for (auto* links : {&part.in, &part.out}) {
        std::sort(links->begin(), links->end());
        links->erase(std::unique(links->begin(), links->end()), links->end());
      }
      parts_.push_back(std::move(part));
    }
  }

  std::vector<NetworkPart> take() { return std::move(parts_); }

 private:
  struct Cable {
    std::uint32_t from, to;
    LinkId link;
  };
  const Fabric& fabric_;
  const Network& network_;
  std::vector<Cable> cables_;                     // both directions
  std::vector<std::optional<std::uint32_t>> at_;  // per GPU: the switch of its NIC
  std::vector<NetworkPart> parts_;
};

}  // namespace

std::vector<NetworkPart> network_parts(const Fabric& fabric) {
  if (fabric.topology().network.switches.size() < 2) return {};
  PartFinder finder(fabric);
  for (const VertexKind tier : {VertexKind::leaf, VertexKind::spine, VertexKind::core}) finder.add_tier(tier);
  return finder.take();
}

}  // namespace isthmus
