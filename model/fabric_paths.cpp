#include "model/fabric_paths.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "model/error.hpp"

namespace isthmus {
namespace {

using Weight = boost::property<boost::edge_weight_t, std::uint32_t>;
using Directed =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Weight>;
using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Residual = boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                 boost::property<boost::edge_reverse_t, FlowTraits::edge_descriptor>>;
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                        boost::property<boost::edge_capacity_t, std::int64_t, Residual>>;
using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

/// Boost's own predecessors depend on the order in which its heap meets ties; these depend on the numbers
/// only.
std::vector<std::uint32_t> lowest_arrivals(std::span<const Arc> arcs,
                                           const std::vector<std::uint32_t>& distance) {
  std::vector<std::uint32_t> arriving(distance.size(), unreached);
  for (std::uint32_t number = 0; number < arcs.size(); ++number) {
    const Arc& arc = arcs[number];
    if (distance[arc.from] == unreached || distance[arc.from] + arc.weight != distance[arc.to]) continue;
    std::uint32_t& best = arriving[arc.to];
    if (best == unreached || arc.from < arcs[best].from) best = number;
  }
  return arriving;
}

}  // namespace

std::vector<std::uint32_t> PathTree::arcs_to(std::uint32_t target, std::span<const Arc> arcs) const {
  std::vector<std::uint32_t> path;
  for (std::uint32_t arc = arriving[target]; arc != unreached; arc = arriving[arcs[arc].from])
    path.push_back(arc);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<PathTree> shortest_paths(std::uint32_t vertex_count, std::span<const Arc> arcs,
                                     std::span<const std::uint32_t> sources) {
  Directed graph(vertex_count);
  for (const Arc& arc : arcs) {
    ISTHMUS_ASSERT(arc.weight > 0, "arc {} -> {}", arc.from, arc.to);
    boost::add_edge(arc.from, arc.to, Weight(arc.weight), graph);
  }
  std::vector<PathTree> trees(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    trees[i].distance.resize(vertex_count);
    const auto distances =
        boost::make_iterator_property_map(trees[i].distance.begin(), boost::get(boost::vertex_index, graph));
    boost::dijkstra_shortest_paths(graph, sources[i], boost::distance_map(distances));
    trees[i].arriving = lowest_arrivals(arcs, trees[i].distance);
  }
  return trees;
}

std::vector<std::uint32_t> components(std::uint32_t vertex_count, std::span<const Arc> arcs) {
  Undirected graph(vertex_count);
  for (const Arc& arc : arcs) boost::add_edge(arc.from, arc.to, graph);
  std::vector<std::uint32_t> component(vertex_count);
  // Boost starts its searches in vertex order, which is the numbering that the header promises.
  if (vertex_count > 0) {
    boost::connected_components(
        graph, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph)));
  }
  return component;
}

std::int64_t maximum_flow(std::uint32_t vertex_count, std::span<const FlowArc> arcs, std::uint32_t source,
                          std::uint32_t target) {
  ISTHMUS_ASSERT(source != target, "flow from vertex {} to itself", source);
  FlowGraph graph(vertex_count);
  for (const FlowArc& arc : arcs) {
    if (arc.from == arc.to || arc.capacity <= 0) continue;
    const auto there = boost::add_edge(arc.from, arc.to, graph).first;
    const auto back = boost::add_edge(arc.to, arc.from, graph).first;
    boost::put(boost::edge_capacity, graph, there, arc.capacity);
    boost::put(boost::edge_capacity, graph, back, std::int64_t{0});
    boost::put(boost::edge_reverse, graph, there, back);
    boost::put(boost::edge_reverse, graph, back, there);
  }
  return boost::push_relabel_max_flow(graph, source, target);
}

}  // namespace isthmus
