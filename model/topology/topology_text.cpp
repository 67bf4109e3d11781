#include "model/topology/topology_text.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "model/topology/importers.hpp"

namespace isthmus {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

}  // namespace

void Findings::add(std::string_view code, std::string_view text) {
  if (of_code_[std::string(code)]++ < max_findings_of_a_code)
    list_.push_back({std::string(code), printable(text, text.size() + 1)});
}

std::vector<Finding> Findings::take() {
  for (const auto& [code, count] : of_code_) {
    if (count <= max_findings_of_a_code) continue;
    list_.push_back({code, fmt::format("{} more of this kind", count - max_findings_of_a_code)});
  }
  of_code_.clear();
  return std::move(list_);
}

bool TextLines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  line = rest_.substr(0, end);
  cut_ = end == rest_.size();
  if (line.ends_with('\r')) line.remove_suffix(1);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++number_;
  return true;
}

void require_topology_size(std::string_view text, const std::string& file) {
  if (text.size() <= max_topology_bytes) return;
  throw InputError({file, 0, ""}, fmt::format("{} bytes", text.size()),
                   fmt::format("at most {} MiB", max_topology_bytes >> 20));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;
       at = line.find_first_not_of(blanks, at)) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::uint64_t> whole_number(std::string_view text, int base, std::uint64_t most) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : base;
    if (digit >= base) return std::nullopt;
    const auto next = static_cast<std::uint64_t>(digit);
    if (value > (most - std::min(most, next)) / static_cast<std::uint64_t>(base)) return std::nullopt;
    value = value * static_cast<std::uint64_t>(base) + next;
    if (value > most) return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> decimal_in_billionths(std::string_view text, std::int64_t most) {
  constexpr std::int64_t unit = 1'000'000'000;
  constexpr std::size_t decimals = 9;
  const std::size_t point = text.find('.');
  const auto whole = whole_number(text.substr(0, point), 10, static_cast<std::uint64_t>(most));
  if (!whole) return std::nullopt;
  std::string fraction(point == std::string_view::npos ? "0" : text.substr(point + 1));
  if (fraction.empty() || fraction.size() > decimals) return std::nullopt;
  fraction.resize(decimals, '0');
  const auto part = whole_number(fraction, 10, static_cast<std::uint64_t>(unit));
  if (!part) return std::nullopt;
  const std::int64_t value = static_cast<std::int64_t>(*whole) * unit + static_cast<std::int64_t>(*part);
  return value > most * unit ? std::nullopt : std::optional(value);
}

std::string listed(const std::vector<std::string>& names, std::size_t most) {
  const std::size_t shown = std::min(names.size(), most);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", names[i]);
  }
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string topology_name(std::string_view text) { return printable(trimmed(text), max_name_bytes); }

bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    std::size_t end_a = i, end_b = j;
    while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
    while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
    const std::string_view number_a = a.substr(i, end_a - i), number_b = b.substr(j, end_b - j);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
    i = end_a;
    j = end_b;
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

std::size_t most_common(const std::vector<std::size_t>& values) {
  std::map<std::size_t, std::size_t> count_of;
  for (const std::size_t value : values) ++count_of[value];
  auto best = count_of.begin();
  for (auto each = count_of.begin(); each != count_of.end(); ++each)
    if (each->second >= best->second) best = each;
  return best->first;
}

void join(Block& block, const BlockWire& wire) {
  block.wires.push_back(wire);
  BlockWire back = wire;
  std::swap(back.from, back.to);
  block.wires.push_back(back);
}

std::uint32_t add_vertex(Block& block, VertexKind kind, std::uint32_t host, std::string label) {
  const auto same = [&](const BlockVertex& vertex) { return vertex.kind == kind && vertex.host == host; };
  const auto last = std::find_if(block.vertices.rbegin(), block.vertices.rend(), same);
  const std::uint32_t index = last == block.vertices.rend() ? 0 : last->index + 1;
  block.vertices.push_back({kind, host, index, std::move(label)});
  return static_cast<std::uint32_t>(block.vertices.size() - 1);
}

std::vector<std::uint32_t> rails_of(const std::vector<std::optional<std::uint32_t>>& nearest_gpu) {
  std::vector<std::uint32_t> order(nearest_gpu.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (!nearest_gpu[a] || !nearest_gpu[b]) return nearest_gpu[a].has_value() && !nearest_gpu[b];
    return *nearest_gpu[a] < *nearest_gpu[b];
  });
  std::vector<std::uint32_t> rails(order.size());
  for (std::uint32_t rail = 0; rail < order.size(); ++rail) rails[order[rail]] = rail;
  return rails;
}

Topology topology_of(Block block, Findings& findings) {
  Topology topology;
  topology.name = block.name;
  topology.switch_of_nic.assign(block.nics.size(), no_switch);
  topology.types.push_back(std::move(block));
  topology.blocks.push_back(0);
  findings.add("network-unknown",
               "the file describes one machine: how its NICs are cabled to switches, and how many such "
               "machines there are, it does not say");
  return topology;
}

}  // namespace isthmus
