#include "model/topology/topology_json.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/topology/topology_faults.hpp"

namespace isthmus {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class TopologyWriter {
 public:
  explicit TopologyWriter(const Topology& topology) : topology_(topology) {}

  std::string write() {
    add("{{\n  \"isthmus_topology\": 1,\n");
    if (!topology_.name.empty()) add("  \"name\": {},\n", json_text(topology_.name));
    add("  \"gpus_known\": {},\n", topology_.gpus_known);
    const Routing& routing = topology_.routing;
    add("  \"routing\": {{\"pxn\": {}, \"hashed\": {}, \"seed\": {}}},\n", routing.pxn, routing.hashed,
        routing.seed);
    write_list("  ", "types", topology_.types, [&](const Block& block) { write(block); });
    add(",\n");
    write_blocks();
    add(",\n  \"network\": {{\n");
    write_list("    ", "switches", topology_.network.switches, [&](const NetworkSwitch& each) {
      add("      {{\"tier\": \"{}\"", to_string(each.tier));
      if (!each.name.empty()) add(", \"name\": {}", json_text(each.name));
      add("}}");
    });
    add(",\n");
    write_list("    ", "cables", topology_.network.cables, [&](const NetworkCable& cable) {
      add("      {{\"low\": {}, \"high\": {}, \"wires\": {}, \"wire\": {}, \"evidence\": \"{}\"}}", cable.low,
          cable.high, cable.wires, cable.wire.value, to_string(cable.evidence));
    });
    add("\n  }},\n");
    write_switch_of_nic();
    add("\n}}\n");
    return fmt::to_string(text_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  template <class List, class Write>
  void write_list(std::string_view indent, std::string_view key, const List& list, Write write_item) {
    add("{}\"{}\": [", indent, key);
    bool first = true;
    for (const auto& item : list) {
      add("{}\n", first ? "" : ",");
      write_item(item);
      first = false;
    }
    if (!first) add("\n{}", indent);
    add("]");
  }

  void write(const Block& block);
  void write(const BlockVertex& vertex);
  void write_wires(const Block& block);
  void write_blocks();
  void write_switch_of_nic();
  void write_run(const std::vector<std::uint32_t>& run, std::size_t times, bool first);

  const Topology& topology_;
  fmt::memory_buffer text_;
};

void TopologyWriter::write(const BlockVertex& vertex) {
  add("        {{\"kind\": \"{}\"", to_string(vertex.kind));
  if (vertex.host) add(", \"host\": {}", *vertex.host);
  add(", \"index\": {}", vertex.index);
  if (!vertex.label.empty()) add(", \"label\": {}", json_text(vertex.label));
  if (!vertex.attributes.empty()) {
    std::string_view separator = ", \"attributes\": {";
    for (const auto& [name, value] : vertex.attributes) {
      add("{}{}: {}", separator, json_text(name), json_text(value));
      separator = ", ";
    }
    add("}}");
  }
  add("}}");
}

/// Records whose way back stands right behind them with the same numbers are written as one.
void TopologyWriter::write_wires(const Block& block) {
  add("      \"wires\": [");
  for (std::size_t i = 0; i < block.wires.size(); ++i) {
    const BlockWire& wire = block.wires[i];
    add("{}\n        ", i == 0 ? "" : ",");
    BlockWire back = wire;
    std::swap(back.from, back.to);
    const bool both = i + 1 < block.wires.size() && block.wires[i + 1] == back;
    if (both) {
      add("{{\"between\": [{}, {}]", wire.from, wire.to);
    } else {
      add("{{\"from\": {}, \"to\": {}", wire.from, wire.to);
    }
    add(", \"kind\": \"{}\", \"wires\": {}, \"rate\": {}, \"evidence\": \"{}\"}}", to_string(wire.kind),
        wire.wires, wire.rate.value, to_string(wire.evidence));
    if (both) ++i;
  }
  add("{}],\n", block.wires.empty() ? "" : "\n      ");
}

void TopologyWriter::write(const Block& block) {
  add("    {{\n");
  if (!block.name.empty()) add("      \"name\": {},\n", json_text(block.name));
  add("      \"hosts\": {}, \"nvlink_known\": {},\n", block.hosts, block.nvlink_known);
  write_list("      ", "vertices", block.vertices, [&](const BlockVertex& vertex) { write(vertex); });
  add(",\n");
  write_wires(block);
  write_list("      ", "gpus", block.gpus, [&](const BlockGpu& gpu) {
    add("        {{\"vertex\": {}, \"partition\": {}, \"gpudirect\": {}", gpu.vertex, gpu.partition,
        gpu.gpudirect);
    if (gpu.nic) add(", \"nic\": {}", *gpu.nic);
    add("}}");
  });
  add(",\n");
  write_list("      ", "nics", block.nics, [&](const BlockNic& nic) {
    add("        {{\"vertex\": {}, \"rail\": {}, \"card\": {}, \"rate\": {}, \"evidence\": \"{}\"}}",
        nic.vertex, nic.rail, nic.card, nic.rate.value, to_string(nic.evidence));
  });
  add("\n    }}");
}

void TopologyWriter::write_blocks() {
  add("  \"blocks\": [");
  const std::vector<std::uint32_t>& blocks = topology_.blocks;
  for (std::size_t first = 0, next = 0; first < blocks.size(); first = next) {
    while (next < blocks.size() && blocks[next] == blocks[first]) ++next;
    add("{}{{\"type\": {}, \"times\": {}}}", first == 0 ? "" : ", ", blocks[first], next - first);
  }
  add("]");
}

void TopologyWriter::write_run(const std::vector<std::uint32_t>& run, std::size_t times, bool first) {
  add("{}\n    {{\"switches\": [", first ? "" : ",");
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (i > 0) add(", ");
    if (run[i] == no_switch) {
      add("null");
    } else {
      add("{}", run[i]);
    }
  }
  add("], \"times\": {}}}", times);
}

/// In pieces of one host's NICs where the hosts of a block have equally many, else of a block's.
void TopologyWriter::write_switch_of_nic() {
  add("  \"switch_of_nic\": [");
  std::vector<std::size_t> pieces;
  for (const Block& type : topology_.types) {
    const std::size_t nics = count_vertices(type, VertexKind::nic);
    pieces.push_back(nics % type.hosts == 0 ? nics / type.hosts : nics);
  }
  std::vector<std::uint32_t> run;
  std::size_t times = 0, at = 0;
  bool first = true;
  for (const std::uint32_t type : topology_.blocks) {
    for (std::size_t left = topology_.types[type].nics.size(); left > 0; left -= pieces[type]) {
      const auto begin = topology_.switch_of_nic.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<std::uint32_t> piece(begin, begin + static_cast<std::ptrdiff_t>(pieces[type]));
      at += piece.size();
      if (times > 0 && piece != run) {
        write_run(run, times, first);
        first = false;
        times = 0;
      }
      run = piece;
      ++times;
    }
  }
  if (times > 0) write_run(run, times, first);
  add("{}]", times > 0 ? "\n  " : "");
}

}  // namespace

std::string to_json(const Topology& topology) { return TopologyWriter(topology).write(); }

}  // namespace isthmus
