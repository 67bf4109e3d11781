#include "model/topology/nccl_xml_tree.hpp"

#include <algorithm>
#include <set>

#include "model/topology/nccl_xml_items.hpp"
#include "model/topology/nccl_xml_written.hpp"

namespace isthmus {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

/// Pairs that a pcilink joins beside the tree, both ways.
std::set<Pair> peers_of(const Block& block) {
  std::map<std::uint64_t, std::uint32_t> by_busid;
  for (std::uint32_t v = 0; v < block.vertices.size(); ++v) {
    const auto found = block.vertices[v].attributes.find("pci.busid");
    if (found != block.vertices[v].attributes.end())
      by_busid.emplace(busid_number(found->second).value_or(0), v);
  }
  std::set<Pair> peers;
  for (std::uint32_t v = 0; v < block.vertices.size(); ++v) {
    const auto found = block.vertices[v].attributes.find("pcilink.target");
    std::string_view rest =
        found == block.vertices[v].attributes.end() ? std::string_view() : std::string_view(found->second);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const auto peer = by_busid.find(busid_number(rest.substr(0, end)).value_or(0));
      if (peer != by_busid.end()) peers.insert({{v, peer->second}, {peer->second, v}});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return peers;
}

bool is_device(VertexKind kind) { return kind == VertexKind::gpu || kind == VertexKind::nic; }

class Forest {
 public:
  explicit Forest(const Block& block) : block_(block), neighbours_(block.vertices.size()) {
    tree_.parents.resize(block.vertices.size());
    tree_.children.resize(block.vertices.size());
    const std::set<Pair> peers = peers_of(block);
    for (const BlockWire& wire : block.wires) {
      if (wire.kind != WireKind::pcie || peers.contains({wire.from, wire.to})) continue;
      const auto [rate, is_new] = tree_.rates.try_emplace({wire.from, wire.to}, wire.rate);
      if (is_new)
        neighbours_[wire.from].push_back(wire.to);
      else
        rate->second += wire.rate;
    }
  }

  PcieTree find() {
    std::vector<std::uint32_t> queue;
    for (std::uint32_t v = 0; v < block_.vertices.size(); ++v)
      if (kind(v) == VertexKind::cpu) queue.push_back(v);
    for (std::size_t i = 0; i < queue.size(); ++i) visit(queue[i], queue);
    for (std::uint32_t v = 0; v < block_.vertices.size(); ++v) {
      const bool free = kind(v) == VertexKind::cpu || kind(v) == VertexKind::nvswitch;
      if (!free && tree_.parents[v].empty())
        refuse_export(vertex_name(block_, v) + ", which no PCIe wire joins to a CPU",
                      "a tree below the CPUs");
      const auto order = [&](std::uint32_t child) {
        return std::pair(kind(child) == VertexKind::gpu ? 0 : kind(child) == VertexKind::nic ? 1 : 2, child);
      };
      std::ranges::sort(tree_.children[v], {}, order);
    }
    return std::move(tree_);
  }

 private:
  VertexKind kind(std::uint32_t v) const { return block_.vertices[v].kind; }

  void visit(std::uint32_t v, std::vector<std::uint32_t>& queue) {
    for (const std::uint32_t other : neighbours_[v]) {
      std::vector<std::uint32_t>& above = tree_.parents[other];
      const bool is_parent = std::ranges::find(tree_.parents[v], other) != tree_.parents[v].end();
      if (is_parent) continue;
      const bool repeated = kind(other) == VertexKind::nic && kind(v) == VertexKind::cpu;
      const bool root = kind(other) == VertexKind::cpu || kind(other) == VertexKind::nvswitch;
      if (is_device(kind(v)) || root || (!above.empty() && !repeated))
        refuse_export(vertex_name(block_, other) + " below " + vertex_name(block_, v),
                      "PCIe wires that form a tree below the CPUs, with GPUs and NICs as its leaves");
      if (!tree_.rates.contains({other, v}))
        refuse_export("PCIe from " + vertex_name(block_, v) + " one way only", "wires both ways");
      if (above.empty()) queue.push_back(other);
      above.push_back(v);
      tree_.children[v].push_back(other);
    }
  }

  const Block& block_;
  std::vector<std::vector<std::uint32_t>> neighbours_;
  PcieTree tree_{};
};

}  // namespace

PcieTree find_tree(const Block& block) { return Forest(block).find(); }

}  // namespace isthmus
