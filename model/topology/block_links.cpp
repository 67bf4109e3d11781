#include "model/topology/block_links.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/names.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t unset = ~0u;

class Builder {
 public:
  explicit Builder(const Block& block) : block_(block) {
    result_.of_wire.assign(block.wires.size(), unset);
    result_.nvlink.resize(block.gpus.size());
    result_.nic.resize(block.nics.size());
    for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) gpu_at_[block.gpus[gpu].vertex] = gpu;
  }

  BlockLinks run() {
    for (std::uint32_t gpu = 0; gpu < block_.gpus.size(); ++gpu) add_gpu(gpu);
    for (std::uint32_t nic = 0; nic < block_.nics.size(); ++nic) add_card(nic);
    for (std::uint32_t w = 0; w < block_.wires.size(); ++w) {
      if (result_.of_wire[w] != unset) continue;
      const BlockWire& wire = block_.wires[w];
      const BlockVertex& from = block_.vertices[wire.from];
      result_.of_wire[w] = add({fmt::format("{} to {}", vertex_name(from), vertex_name(vertex(wire.to))),
                                from.host, class_of(wire.kind), wire.rate});
    }
    return std::move(result_);
  }

 private:
  const BlockVertex& vertex(std::uint32_t index) const { return block_.vertices[index]; }
  static LinkClass class_of(WireKind kind) {
    return kind == WireKind::nvlink ? LinkClass::nvlink : LinkClass::pcie;
  }
  std::uint32_t add(BlockLink link) {
    result_.links.push_back(std::move(link));
    return static_cast<std::uint32_t>(result_.links.size() - 1);
  }

  /// A GPU's NVLink port, then each wire between it and its host.
  void add_gpu(std::uint32_t gpu) {
    const std::uint32_t at = block_.gpus[gpu].vertex;
    const std::string name = vertex_name(vertex(at));
    Bandwidth out, in;
    for (const BlockWire& wire : block_.wires) {
      if (wire.kind != WireKind::nvlink) continue;
      if (wire.from == at) out += wire.rate;
      if (wire.to == at) in += wire.rate;
    }
    if (out.value > 0 && in.value > 0) {
      result_.nvlink[gpu] = {add({"NVLink out of " + name, vertex(at).host, LinkClass::nvlink, out}),
                             add({"NVLink into " + name, vertex(at).host, LinkClass::nvlink, in})};
    }
    for (std::uint32_t w = 0; w < block_.wires.size(); ++w) {
      const BlockWire& wire = block_.wires[w];
      if (wire.from != at && wire.to != at) continue;
      const bool leaves = wire.from == at;
      if (wire.kind == WireKind::nvlink) {
        const bool direct = gpu_at_.contains(wire.from) && gpu_at_.contains(wire.to);
        const auto port = leaves ? result_.nvlink[gpu].out : result_.nvlink[gpu].in;
        if (!direct && port) result_.of_wire[w] = *port;
        continue;
      }
      const std::string_view what = wire.kind == WireKind::c2c ? "C2C" : "PCIe";
      result_.of_wire[w] = add({fmt::format("{} {} {}", what, leaves ? "out of" : "into", name),
                                vertex(at).host, LinkClass::pcie, wire.rate});
    }
  }

  /// All ports of a card: the sum of their cables, at most what the slot carries.
  void add_card(std::uint32_t first) {
    if (result_.nic[first].out) return;
    const BlockVertex& at = vertex(block_.nics[first].vertex);
    std::vector<std::uint32_t> ports;
    Bandwidth cables, slot_out, slot_in;
    std::string name;
    for (std::uint32_t nic = 0; nic < block_.nics.size(); ++nic) {
      const BlockNic& port = block_.nics[nic];
      if (port.card != block_.nics[first].card || vertex(port.vertex).host != at.host) continue;
      ports.push_back(nic);
      cables += port.rate;
      name += (name.empty() ? "" : " and ") + vertex(port.vertex).label;
      for (const BlockWire& wire : block_.wires) {
        if (wire.to == port.vertex) slot_out = std::max(slot_out, wire.rate);
        if (wire.from == port.vertex) slot_in = std::max(slot_in, wire.rate);
      }
    }
    // A preset's NIC stands beside the GPU of the same number; a file's goes by its own name.
    const std::string there =
        at.label.empty() ? fmt::format("NIC out of GPU {}", at.index) : fmt::format("out of NIC {}", name);
    const std::string back =
        at.label.empty() ? fmt::format("NIC into GPU {}", at.index) : fmt::format("into NIC {}", name);
    const BlockLinks::Port pair{add({there, at.host, LinkClass::nic, std::min(cables, slot_out)}),
                                add({back, at.host, LinkClass::nic, std::min(cables, slot_in)})};
    for (const std::uint32_t nic : ports) {
      result_.nic[nic] = pair;
      for (std::uint32_t w = 0; w < block_.wires.size(); ++w) {
        if (block_.wires[w].to == block_.nics[nic].vertex) result_.of_wire[w] = *pair.out;
        if (block_.wires[w].from == block_.nics[nic].vertex) result_.of_wire[w] = *pair.in;
      }
    }
  }

  const Block& block_;
  BlockLinks result_;
  std::map<std::uint32_t, std::uint32_t> gpu_at_;  // vertex -> GPU
};

}  // namespace

std::string vertex_name(const BlockVertex& vertex) {
  if (vertex.kind == VertexKind::nic && !vertex.label.empty()) return "NIC " + vertex.label;
  return fmt::format("{} {}", display_name(vertex.kind), vertex.index);
}

std::vector<std::uint32_t> BlockLinks::along(const Block& block,
                                             const std::vector<std::uint32_t>& wires) const {
  std::vector<std::uint32_t> result;
  const auto add = [&](std::uint32_t link) {
    if (result.empty() || result.back() != link) result.push_back(link);
  };
  const auto gpu_at = [&](std::uint32_t vertex) {
    const auto found = std::find_if(block.gpus.begin(), block.gpus.end(),
                                    [&](const BlockGpu& gpu) { return gpu.vertex == vertex; });
    ISTHMUS_ASSERT(found != block.gpus.end(), "vertex {} is no GPU", vertex);
    return static_cast<std::size_t>(found - block.gpus.begin());
  };
  for (const std::uint32_t w : wires) {
    const BlockWire& wire = block.wires[w];
    const bool direct = wire.kind == WireKind::nvlink && block.vertices[wire.from].kind == VertexKind::gpu &&
                        block.vertices[wire.to].kind == VertexKind::gpu;
    if (direct) add(*nvlink[gpu_at(wire.from)].out);
    add(of_wire[w]);
    if (direct) add(*nvlink[gpu_at(wire.to)].in);
  }
  return result;
}

BlockLinks links_of(const Block& block) { return Builder(block).run(); }

}  // namespace isthmus
