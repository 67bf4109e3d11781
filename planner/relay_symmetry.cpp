#include "planner/relay_symmetry.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace isthmus {
namespace {

/// Rounds of colouring: more than any route has links, so that both ends of one know of each other.
constexpr int rounds = 8;

enum Mark : std::uint64_t {
  leaving = 1,
  arriving,
  holding,
  receiving,
  held,
  received,
  seen_class,
  seen_receiver,
  open
};

std::uint64_t combined(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 32U;
  hash *= 0xD6E8FEB86659FD93ULL;
  return hash ^ (hash >> 29U);
}

/// Numbers colours by first appearance.
class ColourNumbers {
 public:
  std::uint32_t number(std::uint64_t colour) {
    return numbers_.try_emplace(colour, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

Kinds kinds_of(const std::vector<std::uint64_t>& colours) {
  Kinds kinds;
  ColourNumbers numbers;
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    const std::uint32_t kind = numbers.number(colours[i]);
    kinds.of.push_back(kind);
    if (kind == kinds.first.size()) {
      kinds.first.push_back(i);
      kinds.count.push_back(0);
    }
    ++kinds.count[kind];
  }
  return kinds;
}

Kinds each_alone(std::size_t count) {
  Kinds kinds;
  kinds.of.resize(count);
  std::iota(kinds.of.begin(), kinds.of.end(), 0U);
  kinds.first = kinds.of;
  kinds.count.assign(count, 1);
  return kinds;
}

}  // namespace

RelaySymmetry without_symmetry(std::size_t classes, std::size_t edges, std::size_t demands) {
  RelaySymmetry symmetry;
  symmetry.variables = classes * edges;
  symmetry.variable.resize(symmetry.variables);
  std::iota(symmetry.variable.begin(), symmetry.variable.end(), 0U);
  symmetry.edges = each_alone(edges);
  symmetry.demands = each_alone(demands);
  return symmetry;
}

RelayColours::RelayColours(const Fabric& fabric, const GpuSets& sets, const std::vector<ByteClass>& classes,
                           const RelayGraph& graph)
    : fabric_(fabric), sets_(sets), classes_(classes), graph_(graph) {
  whole_.vertices.assign(graph.vertices, 0);
  for (const std::uint32_t vertex : graph.vertex_of_gpu) whole_.vertices[vertex] = 1;
  for (const RelayGraph::Edge& edge : graph.edges)
    whole_.edges.push_back(
        combined(0, static_cast<std::uint64_t>(fabric.links()[edge.link.index()].nominal.value)));
  for (const auto& entry : graph.inside_domain) {
    for (std::size_t e = 0; e < whole_.edges.size(); ++e) {
      if (entry.second[e] != 0) whole_.edges[e] = combined(whole_.edges[e], open);
    }
  }
  for (const ByteClass& each : classes)
    whole_.classes.push_back(combined(0, static_cast<std::uint64_t>(each.bytes.value)));
  refine(whole_);
}

/// Sums of mixed colours stand for sets of neighbours, whatever their order.
void RelayColours::refine(Colouring& colouring) const {
  std::vector<std::uint64_t> around(graph_.vertices), of_set(sets_.size()), to_set(sets_.size());
  for (int round = 0; round < rounds; ++round) {
    std::fill(around.begin(), around.end(), 0);
    std::fill(of_set.begin(), of_set.end(), 0);
    std::fill(to_set.begin(), to_set.end(), 0);
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      const RelayGraph::Edge& edge = graph_.edges[e];
      std::uint64_t& colour = colouring.edges[e];
      colour = combined(combined(colour, colouring.vertices[edge.from]), colouring.vertices[edge.to]);
      around[edge.from] += combined(colour, leaving);
      around[edge.to] += combined(colour, arriving);
    }
    for (std::uint32_t s = 0; s < sets_.size(); ++s) {
      for (const std::uint32_t gpu : sets_[s])
        of_set[s] += combined(colouring.vertices[graph_.vertex_of_gpu[gpu]], holding);
    }
    for (std::size_t a = 0; a < classes_.size(); ++a) {
      std::uint64_t& colour = colouring.classes[a];
      colour = combined(combined(colour, of_set[classes_[a].holders]),
                        combined(of_set[classes_[a].receivers], receiving));
      to_set[classes_[a].holders] += combined(colour, held);
      to_set[classes_[a].receivers] += combined(colour, received);
    }
    for (std::uint32_t s = 0; s < sets_.size(); ++s) {
      for (const std::uint32_t gpu : sets_[s]) around[graph_.vertex_of_gpu[gpu]] += to_set[s];
    }
    for (std::size_t v = 0; v < around.size(); ++v)
      colouring.vertices[v] = combined(colouring.vertices[v], around[v]);
  }
}

RelayColours::Colouring RelayColours::seen_from(std::size_t of_class) const {
  Colouring colouring = whole_;
  colouring.classes[of_class] = combined(colouring.classes[of_class], seen_class);
  for (const std::uint32_t gpu : sets_[classes_[of_class].holders]) {
    std::uint64_t& colour = colouring.vertices[graph_.vertex_of_gpu[gpu]];
    colour = combined(colour, held);
  }
  for (const std::uint32_t gpu : sets_[classes_[of_class].receivers]) {
    std::uint64_t& colour = colouring.vertices[graph_.vertex_of_gpu[gpu]];
    colour = combined(colour, received);
  }
  return colouring;
}

std::size_t RelayColours::work(std::size_t demands) const {
  std::size_t incidences = 0;
  for (std::uint32_t s = 0; s < sets_.size(); ++s) incidences += 2 * sets_[s].size();
  const std::size_t once = 3 * graph_.edges.size() + graph_.vertices + incidences + 2 * classes_.size();
  return (classes_.size() + demands) * once * rounds;
}

std::vector<std::uint64_t> RelayColours::edges_seen_from(const RelayDemand& demand) const {
  Colouring colouring = seen_from(demand.of_class);
  std::uint64_t& receiver = colouring.vertices[graph_.vertex_of_gpu[demand.gpu]];
  receiver = combined(receiver, seen_receiver);
  for (std::size_t e = 0; demand.allowed != nullptr && e < colouring.edges.size(); ++e) {
    if ((*demand.allowed)[e] != 0) colouring.edges[e] = combined(colouring.edges[e], open);
  }
  refine(colouring);
  return std::move(colouring.edges);
}

RelaySymmetry RelayColours::symmetry(const std::vector<RelayDemand>& demands) const {
  RelaySymmetry symmetry;
  symmetry.edges = kinds_of(whole_.edges);
  symmetry.variable.reserve(classes_.size() * graph_.edges.size());
  ColourNumbers numbers;
  std::vector<std::uint64_t> of_demand(demands.size());
  std::size_t next = 0;  // demands stand by class
  for (std::size_t a = 0; a < classes_.size(); ++a) {
    Colouring colouring = seen_from(a);
    refine(colouring);
    for (const std::uint64_t colour : colouring.edges)
      symmetry.variable.push_back(numbers.number(combined(colouring.classes[a], colour)));
    for (; next < demands.size() && demands[next].of_class == a; ++next) {
      const std::uint64_t receiver = colouring.vertices[graph_.vertex_of_gpu[demands[next].gpu]];
      of_demand[next] = combined(combined(colouring.classes[a], receiver),
                                 demands[next].allowed == nullptr ? 0U : std::uint64_t{open});
    }
  }
  symmetry.variables = numbers.size();
  symmetry.demands = kinds_of(of_demand);
  return symmetry;
}

RelayShares RelayColours::lifted(const RelaySymmetry& symmetry, const std::vector<RelayDemand>& demands,
                                 const RelayShares& shares) const {
  std::map<std::uint32_t, std::unordered_map<std::uint64_t, double>> of_kind;  // by colour of edges
  for (const auto& [demand, edges] : shares) {
    const std::vector<std::uint64_t> colours = edges_seen_from(demands[demand]);
    std::unordered_map<std::uint64_t, double> alike;
    for (const std::uint64_t colour : colours) alike[colour] += 1;
    const std::uint32_t kind = symmetry.demands.of[demand];
    for (const auto& [edge, price] : edges)
      of_kind[kind][colours[edge]] += price / (alike[colours[edge]] * symmetry.demands.count[kind]);
  }
  RelayShares all;
  for (std::size_t d = 0; d < demands.size(); ++d) {
    const auto prices = of_kind.find(symmetry.demands.of[d]);
    if (prices == of_kind.end()) continue;
    const std::vector<std::uint64_t> colours = edges_seen_from(demands[d]);
    for (std::uint32_t e = 0; e < colours.size(); ++e) {
      const auto price = prices->second.find(colours[e]);
      if (price != prices->second.end()) all[d].emplace(e, price->second);
    }
  }
  return all;
}

}  // namespace isthmus
