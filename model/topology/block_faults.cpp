#include "model/topology/block_faults.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "model/topology/topology_faults.hpp"

namespace isthmus {
namespace {

/// The faults of one type of block, with what their keys begin with.
class BlockJudge {
 public:
  BlockJudge(const Block& block, std::size_t number, TopologyFaults& faults)
      : block_(block), number_(number), faults_(faults) {}

  void judge() {
    faults_.judge_text(block_.name, [&] { return key("name"); });
    if (block_.hosts < 1 || block_.hosts > TopologyLimits::vertices_per_block) {
      faults_.add(key("hosts"), fmt::format("{}", block_.hosts),
                  fmt::format("1 to {}", TopologyLimits::vertices_per_block), "1");
    }
    faults_.judge_count(key("vertices"), block_.vertices.size(), TopologyLimits::vertices_per_block);
    faults_.judge_count(key("wires"), block_.wires.size(), TopologyLimits::wires_per_block);
    for (std::size_t i = 0; i < block_.vertices.size(); ++i) judge_vertex(i);
    judge_names();
    for (std::size_t i = 0; i < block_.wires.size(); ++i) judge_wire(i);
    judge_ways_back();
    judge_gpus();
    judge_nics();
  }

 private:
  std::string key(std::string_view member) const { return fmt::format("types.{}.{}", number_, member); }
  std::string key(std::string_view list, std::size_t index, std::string_view member) const {
    return fmt::format("types.{}.{}.{}.{}", number_, list, index, member);
  }

  void judge_vertex(std::size_t i);
  void judge_names();
  void judge_wire(std::size_t i);
  void judge_ends(std::size_t i);
  void judge_ways_back();
  void judge_gpus();
  void judge_choice(std::size_t i, const std::vector<std::uint32_t>& nics);
  void judge_nics();
  std::vector<std::uint32_t> vertices_of(VertexKind kind) const;
  std::optional<std::uint32_t> host_of(std::uint32_t vertex) const {
    return vertex < block_.vertices.size() ? block_.vertices[vertex].host : std::nullopt;
  }
  void judge_table(std::string_view list, VertexKind kind, const std::vector<std::uint32_t>& table);

  const Block& block_;
  std::size_t number_;
  TopologyFaults& faults_;
};

void BlockJudge::judge_vertex(std::size_t i) {
  const BlockVertex& vertex = block_.vertices[i];
  if (vertex.kind > VertexKind::nic) {
    faults_.add(key("vertices", i, "kind"), "a switch of the network", "gpu, nvswitch, pcie-switch, cpu, nic",
                "a switch of `network`");
  }
  if (vertex.host && *vertex.host >= block_.hosts) {
    faults_.add(key("vertices", i, "host"), fmt::format("{}", *vertex.host),
                fmt::format("below {}, the hosts of the block", block_.hosts), "0");
  }
  if (!vertex.host && vertex.kind != VertexKind::nvswitch) {
    faults_.add(key("vertices", i, "host"), "none",
                "a host; only NVSwitch chips are shared by the hosts of a block", "0");
  }
  faults_.judge_text(vertex.label, [&] { return key("vertices", i, "label"); });
  if (vertex.attributes.size() > TopologyLimits::attributes_per_vertex)
    faults_.judge_count(key("vertices", i, "attributes"), vertex.attributes.size(),
                        TopologyLimits::attributes_per_vertex);
  for (const auto& [name, value] : vertex.attributes) {
    const auto place = [&] { return key("vertices", i, "attributes"); };
    if (name.empty()) faults_.add(place(), "an attribute without a name", "a name", "a name");
    faults_.judge_text(name, place);
    faults_.judge_text(value, place);
  }
}

void BlockJudge::judge_names() {
  using Name = std::tuple<VertexKind, std::optional<std::uint32_t>, std::uint32_t, std::size_t>;
  std::vector<Name> names;
  for (std::size_t i = 0; i < block_.vertices.size(); ++i) {
    const BlockVertex& vertex = block_.vertices[i];
    names.emplace_back(vertex.kind, vertex.host, vertex.index, i);
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 1; i < names.size(); ++i) {
    const auto& [kind, host, index, vertex] = names[i];
    if (std::tie(kind, host, index) !=
        std::tie(std::get<0>(names[i - 1]), std::get<1>(names[i - 1]), std::get<2>(names[i - 1])))
      continue;
    faults_.add(key("vertices", vertex, "index"), fmt::format("{}, as of another vertex", index),
                "each number once among its kind on a host", "the next free number");
  }
}

void BlockJudge::judge_wire(std::size_t i) {
  const BlockWire& wire = block_.wires[i];
  faults_.judge_wires(wire.wires, [&] { return key("wires", i, "wires"); });
  faults_.judge_rate(wire.rate, [&] { return key("wires", i, "rate"); });
  if (wire.evidence > Evidence::user)
    faults_.add(key("wires", i, "evidence"), "no such value", "vendor to user", "user");
  const std::size_t vertices = block_.vertices.size();
  if (wire.from >= vertices || wire.to >= vertices) {
    const bool from = wire.from >= vertices;
    faults_.add(key("wires", i, from ? "from" : "to"), fmt::format("{}", from ? wire.from : wire.to),
                fmt::format("below {}, the vertices of the block", vertices), "0");
  } else if (wire.from == wire.to) {
    faults_.add(key("wires", i, "to"), fmt::format("{}, where it begins", wire.to), "another vertex",
                "another vertex");
  } else {
    judge_ends(i);
  }
}

/// NVLink may end at a CPU (POWER9); anything that sits on PCI may be an end of a PCIe wire.
void BlockJudge::judge_ends(std::size_t i) {
  const BlockWire& wire = block_.wires[i];
  const VertexKind from = block_.vertices[wire.from].kind, to = block_.vertices[wire.to].kind;
  const auto ends = [](VertexKind kind, std::initializer_list<VertexKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  const auto both = [&](std::initializer_list<VertexKind> kinds) {
    return ends(from, kinds) && ends(to, kinds);
  };
  std::string allowed;
  switch (wire.kind) {
    case WireKind::nvlink:
      if (!both({VertexKind::gpu, VertexKind::nvswitch, VertexKind::cpu})) allowed = "gpu, nvswitch, cpu";
      break;
    case WireKind::c2c:
      if (!both({VertexKind::gpu, VertexKind::cpu}) || from == to) allowed = "one gpu and one cpu";
      break;
    case WireKind::socket:
      if (!both({VertexKind::cpu})) allowed = "two cpus";
      break;
    case WireKind::pcie:
      if (from > VertexKind::nic || to > VertexKind::nic) allowed = "vertices of a block";
      break;
    default: allowed = "nvlink, c2c, pcie, socket"; break;
  }
  if (allowed.empty()) return;
  const auto name = [](VertexKind kind) {
    return kind > VertexKind::gateway ? std::string_view("nothing known") : to_string(kind);
  };
  const std::string_view kind = wire.kind > WireKind::socket ? "no such kind" : to_string(wire.kind);
  faults_.add(key("wires", i, "kind"), fmt::format("{} from {} to {}", kind, name(from), name(to)), allowed,
              "another kind");
}

void BlockJudge::judge_ways_back() {
  struct End {
    std::uint32_t low, high;
    WireKind kind;
    std::size_t wire;
    bool operator<(const End& other) const {
      return std::tie(low, high, kind, wire) < std::tie(other.low, other.high, other.kind, other.wire);
    }
    bool joins_the_same(const End& other) const {
      return std::tie(low, high, kind) == std::tie(other.low, other.high, other.kind);
    }
  };
  std::vector<End> ends;
  for (std::size_t i = 0; i < block_.wires.size(); ++i) {
    const BlockWire& wire = block_.wires[i];
    ends.push_back({std::min(wire.from, wire.to), std::max(wire.from, wire.to), wire.kind, i});
  }
  std::sort(ends.begin(), ends.end());
  for (std::size_t first = 0, next = 0; first < ends.size(); first = next) {
    std::uint64_t up = 0, down = 0;
    for (next = first; next < ends.size() && ends[next].joins_the_same(ends[first]); ++next) {
      const BlockWire& wire = block_.wires[ends[next].wire];
      (wire.from < wire.to ? up : down) += wire.wires;
    }
    if (up == down || ends[first].low == ends[first].high) continue;
    faults_.add(key("wires", ends[first].wire, "wires"),
                fmt::format("{} wires from {} to {}, {} back", up, ends[first].low, ends[first].high, down),
                "as many wires back", fmt::format("{} both ways", std::max(up, down)));
  }
}

std::vector<std::uint32_t> BlockJudge::vertices_of(VertexKind kind) const {
  std::vector<std::uint32_t> vertices;
  for (std::uint32_t i = 0; i < block_.vertices.size(); ++i)
    if (block_.vertices[i].kind == kind) vertices.push_back(i);
  return vertices;
}

void BlockJudge::judge_table(std::string_view list, VertexKind kind,
                             const std::vector<std::uint32_t>& table) {
  const std::vector<std::uint32_t> vertices = vertices_of(kind);
  if (table.size() != vertices.size()) {
    faults_.add(key(list), fmt::format("{} entries", table.size()),
                fmt::format("{}, one for each vertex of kind {}", vertices.size(), to_string(kind)),
                fmt::format("{} entries", vertices.size()));
  }
  for (std::size_t i = 0; i < std::min(table.size(), vertices.size()); ++i) {
    if (table[i] == vertices[i]) continue;
    faults_.add(key(list, i, "vertex"), fmt::format("{}", table[i]),
                fmt::format("{}, the vertices of this kind in order", vertices[i]),
                fmt::format("{}", vertices[i]));
  }
}

void BlockJudge::judge_gpus() {
  std::vector<std::uint32_t> table;
  for (const BlockGpu& gpu : block_.gpus) table.push_back(gpu.vertex);
  judge_table("gpus", VertexKind::gpu, table);
  const std::vector<std::uint32_t> nics = vertices_of(VertexKind::nic);
  for (std::size_t i = 0; i < block_.gpus.size(); ++i) {
    if (block_.gpus[i].partition >= TopologyLimits::partitions) {
      faults_.add(key("gpus", i, "partition"), fmt::format("{}", block_.gpus[i].partition),
                  fmt::format("below {}", TopologyLimits::partitions), "0");
    }
    if (block_.gpus[i].nic) judge_choice(i, nics);
    if (i > 0 && host_of(table[i]) < host_of(table[i - 1])) {
      faults_.add(
          key("gpus", i, "vertex"), fmt::format("a GPU of host {}", *host_of(table[i])),
          fmt::format("GPUs in the order of their hosts: of host {} or later", *host_of(table[i - 1])),
          "vertices host by host");
    }
  }
}

void BlockJudge::judge_choice(std::size_t i, const std::vector<std::uint32_t>& nics) {
  const BlockGpu& gpu = block_.gpus[i];
  if (*gpu.nic >= nics.size()) {
    faults_.add(key("gpus", i, "nic"), fmt::format("{}", *gpu.nic),
                fmt::format("below {}, the NICs of the block", nics.size()), "none");
  } else if (gpu.vertex < block_.vertices.size() &&
             block_.vertices[gpu.vertex].host != block_.vertices[nics[*gpu.nic]].host) {
    faults_.add(key("gpus", i, "nic"), fmt::format("{}, a NIC of another host", *gpu.nic),
                "a NIC of the GPU's host", "none");
  }
}

void BlockJudge::judge_nics() {
  std::vector<std::uint32_t> table;
  for (const BlockNic& nic : block_.nics) table.push_back(nic.vertex);
  judge_table("nics", VertexKind::nic, table);
  for (std::size_t i = 0; i < block_.nics.size(); ++i) {
    const BlockNic& nic = block_.nics[i];
    faults_.judge_rate(nic.rate, [&] { return key("nics", i, "rate"); });
    if (nic.evidence > Evidence::user)
      faults_.add(key("nics", i, "evidence"), "no such value", "vendor to user", "user");
    if (nic.rail >= TopologyLimits::rails) {
      faults_.add(key("nics", i, "rail"), fmt::format("{}", nic.rail),
                  fmt::format("below {}", TopologyLimits::rails), "0");
    }
  }
}

}  // namespace

void judge_block(const Block& block, std::size_t number, TopologyFaults& faults) {
  BlockJudge(block, number, faults).judge();
}

}  // namespace isthmus
