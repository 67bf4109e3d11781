#include "model/topology/graphviz.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "model/topology/names.hpp"

namespace isthmus {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') result += '\\';
    result += character;
  }
  return result + '"';
}

/// What stands on one line of a label: "\n" between lines is dot's own escape.
std::string two_lines(const std::string& first, const std::string& second) {
  std::string text = quoted(first);
  if (second.empty()) return text;
  text.pop_back();
  return text + "\\n" + quoted(second).substr(1);
}

std::string_view shape_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu: return "box";
    case VertexKind::nvswitch: return "hexagon";
    case VertexKind::pcie_switch: return "diamond";
    case VertexKind::cpu: return "ellipse";
    case VertexKind::nic: return "house";
    default: return "component";
  }
}

/// Parallel wires between two drawn vertices.
struct Bundle {
  std::uint64_t wires = 0;
  Bandwidth least{}, most{};  // of one wire

  void add(std::uint64_t count, Bandwidth one) {
    least = wires == 0 ? one : std::min(least, one);
    most = wires == 0 ? one : std::max(most, one);
    wires += count;
  }
  std::string label() const {
    const std::string rate =
        least == most ? rate_text(most) : fmt::format("{} to {}", rate_text(least), rate_text(most));
    return wires == 1 ? rate : fmt::format("{} x {}", wires, rate);
  }
};

class GraphvizWriter {
 public:
  explicit GraphvizWriter(const Topology& topology)
      : topology_(topology),
        network_(topology.network),
        places_(block_places(topology)),
        times_(topology.types.size()),
        first_(topology.types.size()) {
    for (std::size_t i = topology.blocks.size(); i-- > 0;) {
      ++times_[topology.blocks[i]];
      first_[topology.blocks[i]] = i;
    }
    for (const NetworkSwitch& each : network_.switches) ++tiers_.at(tier_of(each));
  }

  std::string write() {
    add("graph {} {{\n", quoted(topology_.name));
    add("  rankdir=BT; compound=true; newrank=true; node [fontsize=10]; edge [fontsize=8];\n");
    for (std::size_t i = 0; i < topology_.blocks.size(); ++i)
      if (drawn(i)) write_block(i);
    write_switches();
    write_cables();
    write_plugs();
    add("}}\n");
    return fmt::to_string(text_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  static std::size_t tier_of(const NetworkSwitch& each) {
    return static_cast<std::size_t>(each.tier) - static_cast<std::size_t>(VertexKind::leaf);
  }
  bool collapsed(std::uint32_t type) const { return times_[type] > max_drawn_blocks; }
  bool drawn(std::size_t block) const {
    const std::uint32_t type = topology_.blocks[block];
    return !collapsed(type) || first_[type] == block;
  }
  std::string vertex_id(std::size_t block, std::uint32_t vertex) const {
    return fmt::format("b{}v{}", block, vertex);
  }
  std::string switch_id(std::uint32_t number) const {
    const std::size_t tier = tier_of(network_.switches[number]);
    return tiers_.at(tier) > max_drawn_switches ? fmt::format("tier{}", tier) : fmt::format("s{}", number);
  }

  void write_block(std::size_t number);
  void write_vertex(const Block& block, std::size_t number, std::uint32_t vertex, std::string_view indent);
  void write_wires(const Block& block, std::size_t number);
  void write_switches();
  void write_cables();
  void write_plugs();
  void write_bundles(const std::map<std::pair<std::string, std::string>, Bundle>& bundles);

  const Topology& topology_;
  const Network& network_;
  std::vector<BlockPlace> places_;
  std::vector<std::uint64_t> times_;
  std::vector<std::size_t> first_;
  std::array<std::uint64_t, 4> tiers_{};
  fmt::memory_buffer text_;
};

void GraphvizWriter::write_vertex(const Block& block, std::size_t number, std::uint32_t vertex,
                                  std::string_view indent) {
  const BlockVertex& each = block.vertices[vertex];
  add("{}{} [shape={}, label={}];\n", indent, vertex_id(number, vertex), shape_of(each.kind),
      two_lines(fmt::format("{} {}", display_name(each.kind), each.index), each.label));
}

void GraphvizWriter::write_block(std::size_t number) {
  const std::uint32_t type = topology_.blocks[number];
  const Block& block = topology_.types[type];
  const std::string count = collapsed(type) ? fmt::format(", one of {} alike", times_[type]) : "";
  add("  subgraph cluster_b{} {{\n    label={};\n", number,
      two_lines(fmt::format("block {}{}", number, count), block.name));
  std::vector<std::vector<std::uint32_t>> on_host(block.hosts);
  for (std::uint32_t vertex = 0; vertex < block.vertices.size(); ++vertex) {
    if (block.vertices[vertex].host) {
      on_host[*block.vertices[vertex].host].push_back(vertex);
    } else {
      write_vertex(block, number, vertex, "    ");
    }
  }
  for (std::size_t host = 0; host < on_host.size(); ++host) {
    add("    subgraph cluster_b{}h{} {{\n      label=\"host {}\";\n", number, host,
        places_[number].host + host);
    for (const std::uint32_t vertex : on_host[host]) write_vertex(block, number, vertex, "      ");
    add("    }}\n");
  }
  write_wires(block, number);
  add("  }}\n");
}

/// One edge for both ways; where they differ, the label gives both.
void GraphvizWriter::write_wires(const Block& block, std::size_t number) {
  using Ends = std::tuple<std::uint32_t, std::uint32_t, WireKind>;
  std::map<Ends, std::pair<Bundle, Bundle>> edges;
  for (const BlockWire& wire : block.wires) {
    auto& [there, back] = edges[{std::min(wire.from, wire.to), std::max(wire.from, wire.to), wire.kind}];
    (wire.from < wire.to ? there : back).add(wire.wires, {wire.rate.value / wire.wires});
  }
  for (const auto& [ends, ways] : edges) {
    const auto& [low, high, kind] = ends;
    std::string label = ways.first.label();
    if (ways.second.label() != label) label += ", back " + ways.second.label();
    add("    {} -- {} [label={}];\n", vertex_id(number, low), vertex_id(number, high),
        two_lines(std::string(display_name(kind)), label));
  }
}

void GraphvizWriter::write_switches() {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    if (tiers_.at(tier) == 0) continue;
    const auto kind = static_cast<VertexKind>(static_cast<std::size_t>(VertexKind::leaf) + tier);
    add("  {{\n    rank=same;\n");
    if (tiers_.at(tier) > max_drawn_switches) {
      add("    tier{} [shape=component, label=\"{} x {}\"];\n", tier, tiers_.at(tier), display_name(kind));
    }
    for (std::uint32_t i = 0; i < network_.switches.size(); ++i) {
      if (tier_of(network_.switches[i]) != tier || tiers_.at(tier) > max_drawn_switches) continue;
      add("    s{} [shape=component, label={}];\n", i, quoted(switch_name(network_, i)));
    }
    add("  }}\n");
  }
}

void GraphvizWriter::write_bundles(const std::map<std::pair<std::string, std::string>, Bundle>& bundles) {
  for (const auto& [ends, bundle] : bundles)
    add("  {} -- {} [label={}];\n", ends.first, ends.second, quoted(bundle.label()));
}

void GraphvizWriter::write_cables() {
  std::map<std::pair<std::string, std::string>, Bundle> bundles;
  for (const NetworkCable& cable : network_.cables)
    bundles[{switch_id(cable.low), switch_id(cable.high)}].add(cable.wires, cable.wire);
  write_bundles(bundles);
}

/// NICs of blocks that are not drawn count with those of the block that stands for them.
void GraphvizWriter::write_plugs() {
  std::map<std::pair<std::string, std::string>, Bundle> bundles;
  for (std::size_t i = 0; i < topology_.blocks.size(); ++i) {
    const std::uint32_t type = topology_.blocks[i];
    const std::vector<BlockNic>& nics = topology_.types[type].nics;
    const std::size_t block = collapsed(type) ? first_[type] : i;
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
      const std::uint32_t place = topology_.switch_of_nic[places_[i].nic + nic];
      if (place != no_switch)
        bundles[{vertex_id(block, nics[nic].vertex), switch_id(place)}].add(1, nics[nic].rate);
    }
  }
  write_bundles(bundles);
}

}  // namespace

std::string to_graphviz(const Topology& topology) { return GraphvizWriter(topology).write(); }

}  // namespace isthmus
