// The way back from JSON; topology_json.cpp writes.

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "model/json_tree.hpp"
#include "model/topology/topology_faults.hpp"
#include "model/topology/topology_json.hpp"

namespace isthmus {
namespace {

constexpr std::string_view name_form = "a name on one line of at most 4096 bytes";

std::uint32_t number(const JsonValue& value, std::int64_t least = 0, std::int64_t most = 0xFFFF'FFFE) {
  return static_cast<std::uint32_t>(value.integer(least, most));
}

Bandwidth rate(const JsonValue& value) { return {value.integer(0, TopologyLimits::rate.value)}; }

std::string optional_text(const JsonValue& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? value->text(name_form) : std::string();
}

/// The value among first ... last that goes by this name.
template <class Enum>
Enum named(const JsonValue& value, Enum first, Enum last) {
  std::string form;
  const std::string name = value.is_text() ? value.text_or_empty(name_form) : "";
  for (auto i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    if (name == to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
    form += fmt::format("{}{}", form.empty() ? "" : ", ", to_string(static_cast<Enum>(i)));
  }
  value.refuse(form);
}

Evidence evidence(const JsonValue& object) {
  return named(object.at("evidence"), Evidence::vendor, Evidence::user);
}

/// Where the parts of the value stand, for faults that are found when it is complete: lines by the beginning
/// of their keys.
using Lines = std::map<std::string, std::vector<int>, std::less<>>;

class TopologyReader {
 public:
  explicit TopologyReader(const JsonValue& root) : root_(root) {}

  Topology read() {
    root_.allow_only(
        {"isthmus_topology", "name", "gpus_known", "routing", "types", "blocks", "network", "switch_of_nic"});
    root_.at("isthmus_topology").integer(1, 1);
    topology_.name = optional_text(root_, "name");
    topology_.gpus_known = root_.at("gpus_known").flag();
    read_routing(root_.at("routing"));
    for (const JsonValue& type : list(root_, "types", TopologyLimits::types)) read_type(type);
    read_blocks();
    read_network(root_.at("network"));
    read_switch_of_nic();
    return std::move(topology_);
  }

  /// The line of the part that a key of topology_faults names; that of its list where it names no part.
  int line_of(std::string_view key) const;

 private:
  std::vector<JsonValue> list(const JsonValue& object, std::string_view key, std::size_t most) {
    const JsonValue value = object.at(key);
    if (!value.is_list()) value.refuse(fmt::format("a list of at most {} items", most));
    return value.items(most, fmt::format("a list of at most {} items", most));
  }

  void read_routing(const JsonValue& value) {
    value.allow_only({"pxn", "hashed", "seed"});
    topology_.routing.pxn = value.at("pxn").flag();
    topology_.routing.hashed = value.at("hashed").flag();
    const auto most = static_cast<std::int64_t>(TopologyLimits::seed);
    topology_.routing.seed = static_cast<std::uint64_t>(value.at("seed").integer(0, most));
  }

  void read_type(const JsonValue& value);
  BlockVertex read_vertex(const JsonValue& value);
  void read_wire(const JsonValue& value, Block& block, std::vector<int>& lines);
  void read_tables(const JsonValue& value, const std::string& key, Block& block);
  void read_blocks();
  void read_network(const JsonValue& value);
  void read_switch_of_nic();

  JsonValue root_;
  Topology topology_;
  Lines lines_;
};

BlockVertex TopologyReader::read_vertex(const JsonValue& value) {
  value.allow_only({"kind", "host", "index", "label", "attributes"});
  BlockVertex vertex;
  vertex.kind = named(value.at("kind"), VertexKind::gpu, VertexKind::nic);
  if (const auto host = value.find("host")) vertex.host = number(*host);
  vertex.index = number(value.at("index"));
  vertex.label = optional_text(value, "label");
  if (const auto attributes = value.find("attributes")) {
    constexpr std::string_view form = "an object of at most 256 attributes, each a text on one line";
    if (!attributes->is_object()) attributes->refuse(form);
    for (const JsonValue& each : attributes->items(TopologyLimits::attributes_per_vertex, form))
      vertex.attributes.emplace(each.key(), each.text_or_empty("a text on one line"));
  }
  return vertex;
}

void TopologyReader::read_wire(const JsonValue& value, Block& block, std::vector<int>& lines) {
  value.allow_only({"between", "from", "to", "kind", "wires", "rate", "evidence"});
  BlockWire wire;
  const auto between = value.find("between");
  if (between) {
    constexpr std::string_view form = "two numbers of vertices";
    if (value.find("from") || value.find("to")) value.refuse("`between` beside `from`", "one of them");
    if (!between->is_list()) between->refuse(form);
    const std::vector<JsonValue> ends = between->items(2, form);
    if (ends.size() != 2) between->refuse(form);
    wire.from = number(ends[0]);
    wire.to = number(ends[1]);
  } else {
    wire.from = number(value.at("from"));
    wire.to = number(value.at("to"));
  }
  wire.kind = named(value.at("kind"), WireKind::nvlink, WireKind::socket);
  wire.wires = number(value.at("wires"), 1, TopologyLimits::wires);
  wire.rate = rate(value.at("rate"));
  wire.evidence = evidence(value);
  block.wires.push_back(wire);
  lines.push_back(value.line());
  if (!between) return;
  std::swap(wire.from, wire.to);
  block.wires.push_back(wire);
  lines.push_back(value.line());
}

void TopologyReader::read_tables(const JsonValue& value, const std::string& key, Block& block) {
  for (const JsonValue& each : list(value, "gpus", TopologyLimits::vertices_per_block)) {
    each.allow_only({"vertex", "partition", "gpudirect", "nic"});
    BlockGpu gpu{number(each.at("vertex")), number(each.at("partition")), each.at("gpudirect").flag(), {}};
    if (const auto nic = each.find("nic")) gpu.nic = number(*nic);
    block.gpus.push_back(gpu);
    lines_[key + ".gpus"].push_back(each.line());
  }
  for (const JsonValue& each : list(value, "nics", TopologyLimits::vertices_per_block)) {
    each.allow_only({"vertex", "rail", "card", "rate", "evidence"});
    block.nics.push_back({number(each.at("vertex")), number(each.at("rail")), number(each.at("card")),
                          rate(each.at("rate")), evidence(each)});
    lines_[key + ".nics"].push_back(each.line());
  }
}

void TopologyReader::read_type(const JsonValue& value) {
  value.allow_only({"name", "hosts", "nvlink_known", "vertices", "wires", "gpus", "nics"});
  const std::string key = fmt::format("types.{}", topology_.types.size());
  lines_["types"].push_back(value.line());
  Block block;
  block.name = optional_text(value, "name");
  block.hosts = number(value.at("hosts"), 1, TopologyLimits::vertices_per_block);
  block.nvlink_known = value.at("nvlink_known").flag();
  for (const JsonValue& each : list(value, "vertices", TopologyLimits::vertices_per_block)) {
    block.vertices.push_back(read_vertex(each));
    lines_[key + ".vertices"].push_back(each.line());
  }
  std::vector<int>& lines = lines_[key + ".wires"];
  for (const JsonValue& each : list(value, "wires", TopologyLimits::wires_per_block))
    read_wire(each, block, lines);
  read_tables(value, key, block);
  topology_.types.push_back(std::move(block));
}

void TopologyReader::read_blocks() {
  for (const JsonValue& run : list(root_, "blocks", TopologyLimits::blocks)) {
    run.allow_only({"type", "times"});
    const std::int64_t types = static_cast<std::int64_t>(topology_.types.size());
    if (types == 0) run.refuse("a block", "no blocks without types");
    const std::uint32_t type = number(run.at("type"), 0, types - 1);
    const std::size_t left = TopologyLimits::blocks - topology_.blocks.size();
    const std::uint32_t times = number(run.at("times"), 1, static_cast<std::int64_t>(left));
    topology_.blocks.insert(topology_.blocks.end(), times, type);
  }
}

void TopologyReader::read_network(const JsonValue& value) {
  value.allow_only({"switches", "cables"});
  Network& network = topology_.network;
  for (const JsonValue& each : list(value, "switches", TopologyLimits::switches)) {
    each.allow_only({"tier", "name"});
    network.switches.push_back(
        {named(each.at("tier"), VertexKind::leaf, VertexKind::gateway), optional_text(each, "name")});
    lines_["network.switches"].push_back(each.line());
  }
  for (const JsonValue& each : list(value, "cables", TopologyLimits::cables)) {
    each.allow_only({"low", "high", "wires", "wire", "evidence"});
    network.cables.push_back({number(each.at("low")), number(each.at("high")),
                              number(each.at("wires"), 1, TopologyLimits::wires), rate(each.at("wire")),
                              evidence(each)});
    lines_["network.cables"].push_back(each.line());
  }
}

void TopologyReader::read_switch_of_nic() {
  std::vector<std::uint32_t>& places = topology_.switch_of_nic;
  for (const JsonValue& run : list(root_, "switch_of_nic", TopologyLimits::nics)) {
    run.allow_only({"switches", "times"});
    std::vector<std::uint32_t> piece;
    for (const JsonValue& each : list(run, "switches", TopologyLimits::nics))
      piece.push_back(each.is_null() ? no_switch : number(each));
    if (piece.empty()) run.refuse("no switches", "at least one");
    const std::size_t left = (TopologyLimits::nics - places.size()) / piece.size();
    if (left == 0) run.refuse("more NICs", fmt::format("at most {} in all", TopologyLimits::nics));
    for (std::uint32_t n = number(run.at("times"), 1, static_cast<std::int64_t>(left)); n > 0; --n) {
      places.insert(places.end(), piece.begin(), piece.end());
      lines_["switch_of_nic"].insert(lines_["switch_of_nic"].end(), piece.size(), run.line());
    }
  }
}

int TopologyReader::line_of(std::string_view key) const {
  // The longest beginning of the key that names a list with lines, and the number behind it.
  for (std::size_t dot = key.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = key.rfind('.', dot - 1)) {
    const auto lines = lines_.find(key.substr(0, dot));
    std::size_t index = 0;
    const auto end = std::from_chars(key.data() + dot + 1, key.data() + key.size(), index);
    const bool found = lines != lines_.end() && end.ec == std::errc() && index < lines->second.size();
    if (found) return lines->second[index];
  }
  const auto list = root_.find(key.substr(0, key.find('.')));
  return list ? list->line() : root_.line();
}

}  // namespace

Topology topology_from_json(std::string_view text, const std::string& file) {
  const JsonTree tree(text, file);
  TopologyReader reader(tree.root());
  Topology topology = reader.read();
  std::vector<InputFault> faults = topology_faults(topology);
  for (InputFault& fault : faults) fault.where = {file, reader.line_of(fault.where.key), fault.where.key};
  raise_first(faults);
  return topology;
}

}  // namespace isthmus
