#include "tests/support/fabric_tools.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "model/error.hpp"

namespace isthmus {
namespace {

using Vertices = std::vector<std::uint32_t>;

/// Per switch above (and the switch itself): edges on the shortest climb to it.
std::map<std::uint32_t, int> climbs(const FabricGraph& graph, std::uint32_t from) {
  std::map<std::uint32_t, int> reached{{from, 0}};
  Vertices border{from};
  for (int steps = 1; !border.empty(); ++steps) {
    Vertices next;
    for (const FabricEdge& edge : graph.edges) {
      if (std::find(border.begin(), border.end(), edge.from) == border.end()) continue;
      if (graph.vertices[edge.to].kind <= graph.vertices[edge.from].kind) continue;
      if (reached.emplace(edge.to, steps).second) next.push_back(edge.to);
    }
    border = next;
  }
  return reached;
}

bool scale_out(const FabricGraph& graph, const FabricEdge& edge) {
  return graph.vertices[edge.from].kind >= VertexKind::nic && graph.vertices[edge.to].kind >= VertexKind::nic;
}

}  // namespace

FabricSpec preset_spec(const std::string& preset, int hosts, std::vector<FabricEdit> edits) {
  FabricSpec spec;
  spec.preset = preset;
  spec.hosts = hosts;
  spec.edits = std::move(edits);
  return spec;
}

Fabric preset_fabric(const std::string& preset, int hosts, std::vector<FabricEdit> edits) {
  return Fabric(preset_spec(preset, hosts, std::move(edits)));
}

Vertices vertices_of(const FabricGraph& graph, VertexKind kind) {
  Vertices found;
  for (std::uint32_t i = 0; i < graph.vertices.size(); ++i) {
    if (graph.vertices[i].kind == kind) found.push_back(i);
  }
  return found;
}

std::uint32_t wires_between(const FabricGraph& graph, VertexKind from, VertexKind to) {
  std::uint32_t wires = 0;
  for (const FabricEdge& edge : graph.edges) {
    if (graph.vertices[edge.from].kind == from && graph.vertices[edge.to].kind == to) wires += edge.wires;
  }
  return wires;
}

std::int64_t maximum_flow(const FabricGraph& graph, const EdgeCapacity& capacity, const Vertices& sources,
                          const Vertices& sinks) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Reverse = boost::property<boost::edge_reverse_t, Traits::edge_descriptor>;
  using Residual = boost::property<boost::edge_residual_capacity_t, std::int64_t, Reverse>;
  using Capacity = boost::property<boost::edge_capacity_t, std::int64_t, Residual>;
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Capacity> flow(
      graph.vertices.size() + 2);
  const auto add = [&flow](std::size_t from, std::size_t to, std::int64_t amount) {
    const auto there = boost::add_edge(from, to, flow).first, back = boost::add_edge(to, from, flow).first;
    boost::put(boost::edge_capacity, flow, there, amount);
    boost::put(boost::edge_capacity, flow, back, 0);
    boost::put(boost::edge_reverse, flow, there, back);
    boost::put(boost::edge_reverse, flow, back, there);
  };
  for (const FabricEdge& edge : graph.edges) {
    if (const std::int64_t amount = capacity(edge); amount > 0) add(edge.from, edge.to, amount);
  }
  const std::size_t source = graph.vertices.size(), sink = source + 1;
  const std::int64_t unlimited = gigabytes_per_second(1000).value;
  for (const std::uint32_t vertex : sources) add(source, vertex, unlimited);
  for (const std::uint32_t vertex : sinks) add(vertex, sink, unlimited);
  return boost::push_relabel_max_flow(flow, source, sink);
}

double bisection(const Fabric& fabric, bool interleaved) {
  const FabricGraph graph = fabric.graph();
  Vertices sources, sinks;
  const Vertices nics = vertices_of(graph, VertexKind::nic);
  const std::size_t per_host = nics.size() / fabric.host_count();
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const std::size_t host = i / per_host;
    const bool sends = interleaved ? host % 2 == 0 : host < fabric.host_count() / 2;
    (sends ? sources : sinks).push_back(nics[i]);
  }
  const auto capacity = [&](const FabricEdge& edge) { return scale_out(graph, edge) ? edge.rate.value : 0; };
  return static_cast<double>(maximum_flow(graph, capacity, sources, sinks)) * 1e-9;
}

bool is_walk(const FabricGraph& graph, const std::vector<LinkId>& route, std::uint32_t from,
             std::uint32_t to) {
  std::map<LinkId, std::vector<FabricEdge>> edges;
  const std::set<LinkId> wanted(route.begin(), route.end());
  for (const FabricEdge& edge : graph.edges) {
    if (wanted.contains(edge.link)) edges[edge.link].push_back(edge);
  }
  std::set<std::uint32_t> reached{from};
  for (const LinkId link : route) {
    std::set<std::uint32_t> next;
    for (int stage = 0; stage < 2; ++stage) {  // a NIC's links have two stages: slot and cable
      for (const FabricEdge& edge : edges[link]) {
        if (reached.contains(edge.from) || next.contains(edge.from)) next.insert(edge.to);
      }
    }
    reached = next;
  }
  return reached.contains(to);
}

std::optional<std::uint32_t> switch_beside(const FabricGraph& graph, LinkId link) {
  for (const FabricEdge& edge : graph.edges) {
    if (edge.link != link || !scale_out(graph, edge)) continue;
    return graph.vertices[edge.from].kind > VertexKind::nic ? edge.from : edge.to;
  }
  return std::nullopt;
}

std::optional<int> fewest_switches(const FabricGraph& graph, std::uint32_t from, std::uint32_t to) {
  const auto left = climbs(graph, from), right = climbs(graph, to);
  std::optional<int> fewest;
  for (const auto& [top, steps] : left) {
    const auto other = right.find(top);
    if (other == right.end()) continue;
    fewest = std::min(fewest.value_or(std::numeric_limits<int>::max()), steps + other->second + 1);
  }
  return fewest;
}

double rate_of(const Fabric& fabric, std::optional<LinkId> link) {
  return link ? static_cast<double>(fabric.links()[link->index()].nominal.value) * 1e-9 : 0;
}

double nvlink_rate(const Fabric& fabric, std::uint32_t gpu) {
  const double out = rate_of(fabric, fabric.nvlink_out({gpu})), in = rate_of(fabric, fabric.nvlink_in({gpu}));
  ISTHMUS_ASSERT(out == in, "GPU {}: {} out, {} in", gpu, out, in);
  return out;
}

double nic_rate(const Fabric& fabric, std::uint32_t gpu) {
  const double out = rate_of(fabric, fabric.nic_out({gpu})), in = rate_of(fabric, fabric.nic_in({gpu}));
  ISTHMUS_ASSERT(out == in, "GPU {}: {} out, {} in", gpu, out, in);
  return out;
}

double network_rate(const Fabric& fabric, std::uint32_t host) {
  std::set<LinkId> ports;
  for (std::size_t local = 0; local < fabric.gpus_on({host}); ++local) {
    if (const auto port = fabric.nic_out(fabric.gpu_at({host}, local))) ports.insert(*port);
  }
  double sum = 0;
  for (const LinkId port : ports) sum += rate_of(fabric, port);
  return sum;
}

double rate_named(const Fabric& fabric, const std::string& name) {
  for (const Link& link : fabric.links()) {
    if (link.name == name) return static_cast<double>(link.nominal.value) * 1e-9;
  }
  ISTHMUS_ASSERT(false, "no link is called '{}'", name);
  return 0;
}

std::map<std::string, Bandwidth> rates_by_name(const Fabric& fabric) {
  std::map<std::string, Bandwidth> rates;
  for (const Link& link : fabric.links()) {
    const bool first = rates.emplace(link.name, link.nominal).second;
    ISTHMUS_ASSERT(first, "two links are called '{}'", link.name);
  }
  return rates;
}

std::vector<std::string> names_along(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  std::vector<std::string> names;
  for (const LinkId link : fabric.route({from}, {to})) names.push_back(fabric.links()[link.index()].name);
  return names;
}

double least_along(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  double least = std::numeric_limits<double>::infinity();
  for (const LinkId link : fabric.route({from}, {to})) least = std::min(least, rate_of(fabric, link));
  return least;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string fabric_refusal(const FabricSpec& spec) {
  return refusal([&] { build_topology(spec); });
}

}  // namespace isthmus
