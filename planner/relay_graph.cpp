#include "planner/relay_graph.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {
namespace {

constexpr double nothing = 1e-9;

/// Numbers that are found to be one.
class Unions {
 public:
  explicit Unions(std::size_t size) : root_(size) { std::iota(root_.begin(), root_.end(), 0u); }
  std::uint32_t find(std::size_t each) {
    while (root_[each] != each) each = root_[each] = root_[root_[each]];
    return static_cast<std::uint32_t>(each);
  }
  void join(std::size_t a, std::size_t b) { root_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> root_;
};

}  // namespace

RelayGraph relay_graph(const Fabric& fabric, const std::vector<char>& part) {
  const std::size_t links = fabric.links().size(), gpus = fabric.gpu_count();
  Unions ends(gpus + 2 * links);  // GPUs, then tail and head of each link
  const auto tail = [&](LinkId link) { return gpus + 2 * link.index(); };
  std::vector<char> used(links, 0);
  std::map<DomainId, std::vector<char>> inside;
  for (std::uint32_t from = 0; from < gpus; ++from) {
    for (std::uint32_t to = 0; to < gpus; ++to) {
      if (from == to || part[from] == 0 || part[to] == 0 || !fabric.reachable({from}, {to})) continue;
      const std::vector<LinkId> route = fabric.route({from}, {to});
      const DomainId domain = fabric.domain_of({from});
      const bool same = domain == fabric.domain_of({to});
      std::vector<char>* marks = same ? &inside.try_emplace(domain, links, 0).first->second : nullptr;
      std::size_t at = from;
      for (const LinkId link : route) {
        ends.join(at, tail(link));
        at = tail(link) + 1;
        used[link.index()] = 1;
        if (marks != nullptr) (*marks)[link.index()] = 1;
      }
      ends.join(at, to);
    }
  }
  RelayGraph graph;
  std::vector<std::uint32_t> number(gpus + 2 * links, static_cast<std::uint32_t>(-1));
  const auto vertex = [&](std::size_t end) {
    std::uint32_t& known = number[ends.find(end)];
    if (known == static_cast<std::uint32_t>(-1)) known = graph.vertices++;
    return known;
  };
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) graph.vertex_of_gpu.push_back(vertex(gpu));
  for (std::uint32_t link = 0; link < links; ++link) {
    if (used[link] == 0) continue;
    graph.edges.push_back({vertex(tail({link})), vertex(tail({link}) + 1), LinkId{link}});
  }
  for (const auto& [domain, marks] : inside) {
    std::vector<char>& of_edge = graph.inside_domain[domain];
    for (const RelayGraph::Edge& edge : graph.edges) of_edge.push_back(marks[edge.link.index()]);
  }
  return graph;
}

Separation separate(const RelayGraph& graph, const std::vector<double>& capacities,
                    const std::vector<std::uint32_t>& sources, std::uint32_t target, double enough) {
  std::vector<double> flow(graph.edges.size(), 0);
  Separation result;
  std::vector<std::vector<std::uint32_t>> around(graph.vertices);
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    if (capacities[e] <= nothing) continue;
    around[graph.edges[e].from].push_back(e);
    around[graph.edges[e].to].push_back(e);
  }
  constexpr auto none = static_cast<std::uint32_t>(-1);
  while (true) {  // shortest augmenting paths
    std::vector<std::uint32_t> arrived_by(graph.vertices, none), queue = sources;
    result.reached.assign(graph.vertices, 0);
    for (const std::uint32_t source : sources) result.reached[source] = 1;
    for (std::size_t next = 0; next < queue.size() && result.reached[target] == 0; ++next) {
      const std::uint32_t at = queue[next];
      for (const std::uint32_t e : around[at]) {
        const bool forward = graph.edges[e].from == at;
        const std::uint32_t to = forward ? graph.edges[e].to : graph.edges[e].from;
        const double room = forward ? capacities[e] - flow[e] : flow[e];
        if (result.reached[to] != 0 || room <= nothing) continue;
        result.reached[to] = 1;
        arrived_by[to] = e;
        queue.push_back(to);
      }
    }
    if (result.reached[target] == 0 || result.flow >= enough) return result;
    double amount = enough;
    for (const bool apply : {false, true}) {
      for (std::uint32_t at = target; arrived_by[at] != none;) {
        const std::uint32_t e = arrived_by[at];
        const bool forward = graph.edges[e].to == at;
        if (apply) {
          flow[e] += forward ? amount : -amount;
        } else {
          amount = std::min(amount, forward ? capacities[e] - flow[e] : flow[e]);
        }
        at = forward ? graph.edges[e].from : graph.edges[e].to;
      }
    }
    result.flow += amount;
  }
}

}  // namespace isthmus
