// Two types of blocks, vertex by vertex and wire by wire.

#include <algorithm>
#include <tuple>
#include <vector>

#include "model/topology/difference_parts.hpp"

namespace isthmus {
namespace {

struct Wires {
  std::uint64_t wires = 0;
  Bandwidth rate;
  friend bool operator==(const Wires&, const Wires&) = default;
};

using Ends = std::tuple<VertexKey, VertexKey, WireKind>;
using WireTable = std::map<Ends, Wires>;

class TypeComparison {
 public:
  TypeComparison(const Block& first, const Block& second, const ComparedBlocks& where, FindingList& found)
      : first_(first), second_(second), where_(where), found_(found) {}

  void compare() {
    tell(found_, "count", fmt::format("hosts of block {}", where_.place.block), first_.hosts, second_.hosts);
    tell(found_, "known", fmt::format("NVLink of block {} is listed", where_.place.block),
         first_.nvlink_known, second_.nvlink_known);
    compare_vertices();
    compare_order(VertexKind::gpu);
    compare_order(VertexKind::nic);
    compare_wires();
    compare_gpus();
    compare_nics();
  }

 private:
  std::string name(const VertexKey& key) const {
    return vertex_name({key.kind, key.host, key.index, {}, {}}, where_.place);
  }
  std::string elsewhere() const {
    return where_.times == 1 ? "" : fmt::format("; so in {} blocks", where_.times);
  }
  template <class Value>
  void tell_of(std::string_view code, const std::string& what, const Value& first, const Value& second) {
    if (first != second) say(code, what, first, second);
  }
  template <class Value>
  void say(std::string_view code, const std::string& what, const Value& first, const Value& second) {
    found_.add(code, [&] {
      return fmt::format("{}: {} in the first, {} in the second{}", what, first, second, elsewhere());
    });
  }

  void compare_vertices();
  void compare_order(VertexKind kind);
  void compare_wires();
  void compare_wire(const Ends& ends, const Wires& first, const Wires& second, bool both_ways);
  void compare_gpus();
  void compare_nics();

  const Block& first_;
  const Block& second_;
  const ComparedBlocks& where_;
  FindingList& found_;
};

std::vector<VertexKey> keys_of(const Block& block, std::optional<VertexKind> kind) {
  std::vector<VertexKey> keys;
  for (const BlockVertex& vertex : block.vertices)
    if (!kind || vertex.kind == *kind) keys.push_back(key_of(vertex));
  return keys;
}

void TypeComparison::compare_vertices() {
  std::vector<VertexKey> a = keys_of(first_, std::nullopt), b = keys_of(second_, std::nullopt), only;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto tell_only = [&](std::string_view side) {
    for (const VertexKey& key : only) {
      found_.add("vertex",
                 [&] { return fmt::format("{} is in the {} only{}", name(key), side, elsewhere()); });
    }
    only.clear();
  };
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
  tell_only("first");
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only));
  tell_only("second");
}

/// Missing ones are told already; what is in both must come in the same order.
void TypeComparison::compare_order(VertexKind kind) {
  const std::vector<VertexKey> a = keys_of(first_, kind), b = keys_of(second_, kind);
  if (a == b || !std::is_permutation(a.begin(), a.end(), b.begin(), b.end())) return;
  found_.add("order", [&] {
    return fmt::format("the {}s of block {} are numbered in another order{}", display_name(kind),
                       where_.place.block, elsewhere());
  });
}

WireTable wires_of(const Block& block) {
  WireTable table;
  for (const BlockWire& wire : block.wires) {
    Wires& sum = table[{key_of(block.vertices[wire.from]), key_of(block.vertices[wire.to]), wire.kind}];
    sum.wires += wire.wires;
    sum.rate += wire.rate;
  }
  return table;
}

void TypeComparison::compare_wire(const Ends& ends, const Wires& first, const Wires& second, bool both_ways) {
  if (first == second) return;
  const auto& [from, to, kind] = ends;
  const std::string what = fmt::format("{} {} {} {} {}", display_name(kind), both_ways ? "between" : "from",
                                       name(from), both_ways ? "and" : "to", name(to));
  if (first.wires == second.wires) {
    say("rate", what, rate_text(first.rate), rate_text(second.rate));
    return;
  }
  const auto text = [](const Wires& wires) {
    if (wires.wires == 0) return std::string("none");
    return fmt::format("{} wires with {}", wires.wires, rate_text(wires.rate));
  };
  say("wire", what, text(first), text(second));
}

void TypeComparison::compare_wires() {
  const WireTable a = wires_of(first_), b = wires_of(second_);
  WireTable all = a;
  all.insert(b.begin(), b.end());
  const auto in = [](const WireTable& table, const Ends& ends) {
    const auto found = table.find(ends);
    return found == table.end() ? Wires{} : found->second;
  };
  for (const auto& [ends, wires] : all) {
    const auto& [from, to, kind] = ends;
    const Ends back{to, from, kind};
    const bool both_ways = in(a, ends) == in(a, back) && in(b, ends) == in(b, back);
    if (both_ways && to < from) continue;
    compare_wire(ends, in(a, ends), in(b, ends), both_ways);
  }
}

std::string nic_choice(const Block& block, const BlockGpu& gpu) {
  if (!gpu.nic) return "the nearest";
  const BlockVertex& nic = block.vertices[block.nics[*gpu.nic].vertex];
  return fmt::format("number {} of its host", nic.index);
}

void TypeComparison::compare_gpus() {
  std::map<VertexKey, const BlockGpu*> others;
  for (const BlockGpu& gpu : second_.gpus) others[key_of(second_.vertices[gpu.vertex])] = &gpu;
  for (const BlockGpu& gpu : first_.gpus) {
    const VertexKey key = key_of(first_.vertices[gpu.vertex]);
    const auto other = others.find(key);
    if (other == others.end()) continue;
    const BlockGpu& same = *other->second;
    tell_of("setting", "NVLink partition of " + name(key), gpu.partition, same.partition);
    tell_of("setting", "GPUDirect of " + name(key), gpu.gpudirect, same.gpudirect);
    tell_of("setting", "NIC of " + name(key), nic_choice(first_, gpu), nic_choice(second_, same));
  }
}

void TypeComparison::compare_nics() {
  const std::map<VertexKey, std::uint32_t> others = nic_numbers(second_);
  for (const BlockNic& nic : first_.nics) {
    const VertexKey key = key_of(first_.vertices[nic.vertex]);
    const auto other = others.find(key);
    if (other == others.end()) continue;
    const BlockNic& same = second_.nics[other->second];
    tell_of("port", "rail of " + name(key), nic.rail, same.rail);
    tell_of("port", "card of " + name(key), nic.card, same.card);
    if (nic.rate != same.rate) say("port", "rate of " + name(key), rate_text(nic.rate), rate_text(same.rate));
  }
}

}  // namespace

std::map<VertexKey, std::uint32_t> nic_numbers(const Block& block) {
  std::map<VertexKey, std::uint32_t> numbers;
  for (std::uint32_t nic = 0; nic < block.nics.size(); ++nic)
    numbers[key_of(block.vertices[block.nics[nic].vertex])] = nic;
  return numbers;
}

void compare_types(const Block& first, const Block& second, const ComparedBlocks& where, FindingList& found) {
  TypeComparison(first, second, where, found).compare();
}

}  // namespace isthmus
