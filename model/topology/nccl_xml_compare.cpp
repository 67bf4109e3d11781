// What a written file says otherwise than the host it was written from.

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_xml_items.hpp"
#include "model/topology/nccl_xml_written.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

using WireEnds = std::tuple<std::uint32_t, std::uint32_t, WireKind>;
struct WireSum {
  std::uint64_t wires = 0;
  Bandwidth rate;
};

/// `place`: by vertex, its number in the other block.
std::map<WireEnds, WireSum> sum_of(const Block& block, const std::vector<std::uint32_t>& place) {
  std::map<WireEnds, WireSum> sums;
  for (const BlockWire& wire : block.wires) {
    WireSum& sum = sums[{place[wire.from], place[wire.to], wire.kind}];
    sum.wires += wire.wires;
    sum.rate += wire.rate;
  }
  return sums;
}

std::vector<std::uint32_t> of_kind(const Block& block, bool (*is)(VertexKind)) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t v = 0; v < block.vertices.size(); ++v)
    if (is(block.vertices[v].kind)) found.push_back(v);
  return found;
}

bool is_gpu(VertexKind kind) { return kind == VertexKind::gpu; }
bool is_nic(VertexKind kind) { return kind == VertexKind::nic; }
bool is_other(VertexKind kind) { return kind == VertexKind::cpu || kind == VertexKind::pcie_switch; }
bool is_chip(VertexKind kind) { return kind == VertexKind::nvswitch; }

/// By vertex of `read`, the vertex of the original.
class Places {
 public:
  Places(const Block& block, const WrittenXml& written, const Block& read)
      : places_(read.vertices.size(), nowhere) {
    pair(of_kind(block, is_gpu), of_kind(read, is_gpu));
    pair(of_kind(block, is_nic), of_kind(read, is_nic));
    pair(written.others, of_kind(read, is_other));
    std::vector<std::pair<std::string, std::uint32_t>> chips;
    for (const auto& [vertex, target] : written.chips) chips.emplace_back(target, vertex);
    std::ranges::sort(chips, {}, [](const auto& chip) {
      const bool hidden = is_hidden_switch(chip.first);
      return std::pair(hidden, hidden ? 0 : busid_number(chip.first).value_or(0));
    });
    std::vector<std::uint32_t> sorted;
    for (const auto& [target, vertex] : chips) sorted.push_back(vertex);
    pair(sorted, of_kind(read, is_chip));
    agree_ &= read.vertices.size() == block.vertices.size();
  }
  bool agree() const { return agree_; }
  const std::vector<std::uint32_t>& all() const { return places_; }

 private:
  void pair(const std::vector<std::uint32_t>& original, const std::vector<std::uint32_t>& read) {
    agree_ &= original.size() == read.size();
    for (std::size_t i = 0; i < std::min(original.size(), read.size()); ++i) places_[read[i]] = original[i];
  }

  std::vector<std::uint32_t> places_;
  bool agree_ = true;
};

std::string wire_name(const Block& block, const WireEnds& ends) {
  const auto [from, to, kind] = ends;
  return fmt::format("{} from {} to {}", to_string(kind), vertex_name(block, from), vertex_name(block, to));
}

std::string words(const WireSum& sum) {
  return fmt::format("{} x {} GB/s in all", sum.wires, static_cast<double>(sum.rate.value) * 1e-9);
}

std::optional<std::string> wire_difference(const Block& block, const std::map<WireEnds, WireSum>& wanted,
                                           const std::map<WireEnds, WireSum>& read) {
  for (const auto& [ends, sum] : wanted) {
    const auto found = read.find(ends);
    if (found == read.end()) return fmt::format("{}, which the file would not hold", wire_name(block, ends));
    const WireKind kind = std::get<WireKind>(ends);
    const bool counts = kind == WireKind::nvlink || kind == WireKind::c2c;
    if (sum.rate != found->second.rate || (counts && sum.wires != found->second.wires)) {
      return fmt::format("{} of {}; the file would say {}", wire_name(block, ends), words(sum),
                         words(found->second));
    }
  }
  for (const auto& [ends, sum] : read)
    if (!wanted.contains(ends))
      return fmt::format("no {}; the file would say {}", wire_name(block, ends), words(sum));
  return std::nullopt;
}

std::optional<std::string> setting_difference(const Block& block, const Block& read) {
  for (std::size_t i = 0; i < block.gpus.size(); ++i)
    if (block.gpus[i].gpudirect != read.gpus[i].gpudirect)
      return fmt::format("GPUDirect {} on {}", block.gpus[i].gpudirect ? "on" : "off",
                         vertex_name(block, block.gpus[i].vertex));
  std::map<std::uint32_t, std::uint32_t> cards, back;
  for (std::size_t i = 0; i < block.nics.size(); ++i) {
    const BlockNic &nic = block.nics[i], &other = read.nics[i];
    const std::string name = vertex_name(block, nic.vertex);
    if (nic.rate != other.rate)
      return fmt::format("{} of {} GB/s", name, static_cast<double>(nic.rate.value) * 1e-9);
    if (nic.rail != other.rail)
      return fmt::format("{} on rail {}; the file would say {}", name, nic.rail, other.rail);
    if (cards.emplace(nic.card, other.card).first->second != other.card ||
        back.emplace(other.card, nic.card).first->second != nic.card)
      return fmt::format("{} on card {}, which the file would join or part otherwise", name, nic.card);
  }
  return std::nullopt;
}

}  // namespace

std::string vertex_name(const Block& block, std::uint32_t vertex) {
  if (vertex >= block.vertices.size()) return "no vertex";
  constexpr std::array<std::string_view, 9> kinds{"GPU",  "NVSwitch", "PCIe switch", "CPU",    "NIC",
                                                  "leaf", "spine",    "core",        "gateway"};
  const BlockVertex& v = block.vertices[vertex];
  std::string name = fmt::format("{} {}", kinds.at(static_cast<std::size_t>(v.kind)), v.index);
  if (!v.label.empty()) name += fmt::format(" ({})", printable(v.label));
  return name;
}

std::optional<std::string> first_difference(const Block& block, const WrittenXml& written,
                                            const Block& read) {
  const Places places(block, written, read);
  if (!places.agree() || block.gpus.size() != read.gpus.size() || block.nics.size() != read.nics.size())
    return "a GPU, NIC, switch or CPU that nothing in the file would name";
  for (std::uint32_t v = 0; v < read.vertices.size(); ++v)
    if (read.vertices[v].kind != block.vertices[places.all()[v]].kind)
      return fmt::format("{}, which the file would take for another kind",
                         vertex_name(block, places.all()[v]));
  if (block.nvlink_known != read.nvlink_known)
    return block.nvlink_known ? "NVLink known, but not for every GPU" : "NVLink not known";
  std::vector<std::uint32_t> same(block.vertices.size());
  for (std::uint32_t v = 0; v < same.size(); ++v) same[v] = v;
  if (auto difference = wire_difference(block, sum_of(block, same), sum_of(read, places.all())))
    return difference;
  return setting_difference(block, read);
}

}  // namespace isthmus
