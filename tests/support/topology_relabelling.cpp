#include "tests/support/topology_relabelling.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace isthmus {
namespace {

using Order = std::vector<std::uint32_t>;  // new place -> old place

Order any_order(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = 1; i < count; ++i)
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  return order;
}

Order inverse(const Order& order) {
  Order result(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) result[order[i]] = i;
  return result;
}

template <class Value>
void reorder(std::vector<Value>& values, const Order& order) {
  std::vector<Value> moved;
  for (const std::uint32_t place : order) moved.push_back(values[place]);
  values = std::move(moved);
}

/// Sorts a table by its new vertices; returns new number -> old number.
template <class Entry>
Order renumber(std::vector<Entry>& table, const Order& new_vertex) {
  for (Entry& entry : table) entry.vertex = new_vertex[entry.vertex];
  Order order(table.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return table[a].vertex < table[b].vertex; });
  reorder(table, order);
  return order;
}

struct Relabelled {
  Block block;
  Order nics;  // new number -> old number
};

Relabelled relabel(Block block) {
  const Order order = any_order(block.vertices.size()), new_vertex = inverse(order);
  block.name += "x";
  reorder(block.vertices, order);
  for (BlockVertex& vertex : block.vertices) vertex.attributes["note"] = "another";
  reorder(block.wires, any_order(block.wires.size()));
  for (BlockWire& wire : block.wires) {
    wire.from = new_vertex[wire.from];
    wire.to = new_vertex[wire.to];
  }
  renumber(block.gpus, new_vertex);
  Order nics = renumber(block.nics, new_vertex);
  const Order new_nic = inverse(nics);
  for (BlockGpu& gpu : block.gpus)
    if (gpu.nic) gpu.nic = new_nic[*gpu.nic];
  return {std::move(block), std::move(nics)};
}

Topology relabelled(Topology topology) {
  std::vector<Order> nics;
  for (Block& block : topology.types) {
    auto [other, order] = relabel(std::move(block));
    block = std::move(other);
    nics.push_back(std::move(order));
  }
  std::size_t first = 0;
  const std::vector<std::uint32_t> plugs = topology.switch_of_nic;
  for (const std::uint32_t type : topology.blocks) {
    for (std::size_t nic = 0; nic < nics[type].size(); ++nic)
      topology.switch_of_nic[first + nic] = plugs[first + nics[type][nic]];
    first += nics[type].size();
  }
  const Order types = any_order(topology.types.size()), new_type = inverse(types);
  reorder(topology.types, types);
  for (std::uint32_t& type : topology.blocks) type = new_type[type];
  reorder(topology.network.cables, any_order(topology.network.cables.size()));
  topology.name += " written otherwise";
  return topology;
}

}  // namespace

rc::Gen<Topology> arbitrary_relabelling(const Topology& topology) {
  return rc::gen::exec([topology] { return relabelled(topology); });
}

}  // namespace isthmus
