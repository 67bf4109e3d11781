#include "model/topology/ibnetdiscover_listing.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

/// What stands at the front of a line, taken word by word.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : rest_(line) {}
  bool take(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  /// Up to `end`, which goes with it.
  std::optional<std::string_view> take_until(char end) {
    const std::size_t at = rest_.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return taken;
  }
  std::string_view rest() const { return rest_; }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
  std::string_view rest_;
};

struct Name {
  IbKind kind = IbKind::adapter;
  std::uint64_t guid = 0;
};

/// "S-2c5eab0300b87b40" without its quotation marks.
std::optional<Name> parse_name(std::string_view text) {
  if (text.size() < 3 || text[1] != '-') return std::nullopt;
  const auto guid = whole_number(text.substr(2), 16, ~std::uint64_t{0});
  if (!guid) return std::nullopt;
  switch (text[0]) {
    case 'S': return Name{IbKind::network_switch, *guid};
    case 'H': return Name{IbKind::adapter, *guid};
    case 'R': return Name{IbKind::router, *guid};
    default: return std::nullopt;
  }
}

struct Speed {
  Bandwidth rate;
  std::uint32_t lanes = 0;
};

/// "4xNDR".
std::optional<Speed> parse_speed(std::string_view word) {
  struct Lane {
    std::string_view name;
    std::int64_t bytes_per_second;
  };
  constexpr std::array lanes{
      Lane{"SDR", 250'000'000},     Lane{"DDR", 500'000'000},    Lane{"QDR", 1'000'000'000},
      Lane{"FDR10", 1'250'000'000}, Lane{"FDR", 1'704'545'455},  Lane{"EDR", 3'125'000'000},
      Lane{"HDR", 6'250'000'000},   Lane{"NDR", 12'500'000'000}, Lane{"XDR", 25'000'000'000}};
  const std::size_t x = word.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto width = whole_number(word.substr(0, x), 10, 12);
  const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                 [&](const Lane& each) { return each.name == word.substr(x + 1); });
  if (!width || lane == lanes.end() || (*width != 1 && *width != 2 && *width % 4 != 0) || *width == 0)
    return std::nullopt;
  return Speed{{lane->bytes_per_second * static_cast<std::int64_t>(*width)},
               static_cast<std::uint32_t>(*width)};
}

/// The text between the first and the last quotation mark.
std::string quoted(std::string_view text) {
  const std::size_t first = text.find('"'), last = text.rfind('"');
  return first == last ? std::string() : topology_name(text.substr(first + 1, last - first - 1));
}

class ListingReader {
 public:
  ListingReader(std::string_view text, const std::string& file, Findings& findings)
      : lines_(text), file_(file), findings_(findings) {}

  IbListing read() {
    for (std::string_view line; lines_.next(line);) {
      if (lines_.at_cut_line()) {
        read_cut_line(line);
      } else {
        read_line(line);
      }
    }
    report_cut();
    return std::move(listing_);
  }

 private:
  [[noreturn]] void refuse(std::string_view found, std::string_view allowed) const {
    throw InputError({file_, lines_.number(), current_ ? to_text(*current_) : std::string()}, found, allowed);
  }
  std::string to_text(std::uint32_t device) const {
    const IbDevice& each = listing_.devices[device];
    constexpr std::array<char, 3> letters{'S', 'H', 'R'};
    return fmt::format("{}-{:016x}", letters.at(static_cast<std::size_t>(each.kind)), each.guid);
  }
  std::uint32_t device_of(const Name& name);
  void read_line(std::string_view line);
  void read_cut_line(std::string_view line);
  void read_section(Cursor cursor, IbKind kind);
  void read_link(Cursor cursor);
  std::uint32_t read_port(Cursor& cursor) const;
  void add_link(IbPort from, IbPort to, const Speed& speed);
  void list_again(IbLink& link, IbPort from, const Speed& speed);
  void report_cut();
  static std::uint64_t key_of(IbPort end) { return (std::uint64_t{end.device} << 8U) + end.port; }

  TextLines lines_;
  const std::string& file_;
  Findings& findings_;
  IbListing listing_;
  std::optional<std::uint32_t> current_;  // whose section we are in
  std::map<std::pair<IbKind, std::uint64_t>, std::uint32_t> number_of_;
  std::unordered_map<std::uint64_t, std::size_t> link_at_;  // by end
};

std::uint32_t ListingReader::device_of(const Name& name) {
  const auto next = static_cast<std::uint32_t>(listing_.devices.size());
  const auto [place, is_new] = number_of_.emplace(std::pair{name.kind, name.guid}, next);
  if (is_new) listing_.devices.push_back({name.kind, name.guid, {}});
  return place->second;
}

void ListingReader::read_line(std::string_view line) {
  const std::string_view content = trimmed(line);
  Cursor cursor(content);
  if (content.empty() || content.starts_with('#')) return;
  if (content.starts_with('[')) return read_link(cursor);
  if (content.starts_with("Switch") && cursor.take("Switch"))
    return read_section(cursor, IbKind::network_switch);
  if (content.starts_with("Ca") && cursor.take("Ca")) return read_section(cursor, IbKind::adapter);
  if (content.starts_with("Rt") && cursor.take("Rt")) return read_section(cursor, IbKind::router);
  current_.reset();
  const std::string_view key = content.substr(0, content.find('='));
  const bool assignment = key.size() < content.size() && key.find_first_of(" \t\"") == std::string_view::npos;
  if (assignment || content.starts_with("Chassis")) return;
  refuse(fmt::format("\"{}\"", printable(content)),
         "Switch, Ca, Rt, [port], a value such as devid=0xd2f2, # or nothing");
}

/// A listing may end in the middle of a line.
void ListingReader::read_cut_line(std::string_view line) {
  try {
    read_line(line);
  } catch (const InputError& error) {
    findings_.add("last-line-cut",
                  fmt::format("line {} ends early and is left out: {}", lines_.number(), error.message()));
  }
}

/// Switch 65 "S-2c5eab0300b87b40"  # "name" enhanced port 0 lid 73 lmc 0
void ListingReader::read_section(Cursor cursor, IbKind kind) {
  current_.reset();
  const std::string form = "the number of ports, and the GUID in quotation marks behind S-, H- or R-";
  const auto ports = cursor.take_until('"');
  if (!ports || !whole_number(trimmed(*ports), 10, max_ib_ports + 1))
    refuse(fmt::format("\"{}\" ports", printable(ports ? trimmed(*ports) : "")), form);
  const auto text = cursor.take_until('"');
  const auto name = text ? parse_name(*text) : std::nullopt;
  if (!name || name->kind != kind) refuse(fmt::format("the name \"{}\"", printable(text.value_or(""))), form);
  const std::uint32_t number = device_of(*name);
  IbDevice& device = listing_.devices[number];
  if (device.line != 0)
    refuse(fmt::format("a second section of {}", to_text(number)),
           fmt::format("one; line {} is one", device.line));
  device.line = lines_.number();
  current_ = number;
  std::string given = quoted(cursor.rest());
  if (!given.empty()) device.name = std::move(given);
}

std::uint32_t ListingReader::read_port(Cursor& cursor) const {
  const auto text = cursor.take("[") ? cursor.take_until(']') : std::nullopt;
  const auto port = text ? whole_number(*text, 10, max_ib_ports) : std::nullopt;
  if (!port || *port == 0) {
    refuse(fmt::format("port \"{}\"", printable(text.value_or(cursor.rest()))),
           fmt::format("1 to {} in square brackets", max_ib_ports));
  }
  return static_cast<std::uint32_t>(*port);
}

/// [33] "S-2c5eab0300c47fc0"[63]  # "name" lid 238 4xNDR; behind either port its GUID may stand in brackets.
void ListingReader::read_link(Cursor cursor) {
  if (!current_) refuse("a link outside of a section", "Switch, Ca or Rt before it");
  const IbPort from{*current_, read_port(cursor)};
  if (cursor.take("[ext")) cursor.take_until(']');
  if (cursor.take("(")) cursor.take_until(')');
  const auto text = cursor.take("\"") ? cursor.take_until('"') : std::nullopt;
  const auto name = text ? parse_name(*text) : std::nullopt;
  if (!name) {
    refuse(fmt::format("the far end \"{}\"", printable(text.value_or(cursor.rest()))),
           "its GUID in quotation marks behind S-, H- or R-");
  }
  const IbPort to{device_of(*name), read_port(cursor)};
  const std::vector<std::string_view> words = words_of(cursor.rest());
  Speed speed;
  if (!words.empty()) {
    const auto said = parse_speed(words.back());
    if (!said && words.back().find('x') != std::string_view::npos && words.back().ends_with("DR"))
      refuse(fmt::format("the rate \"{}\"", printable(words.back())), "1x, 2x, 4x, 8x or 12x SDR to XDR");
    speed = said.value_or(Speed{});
  }
  IbDevice& far = listing_.devices[to.device];
  if (far.name.empty()) far.name = quoted(cursor.rest());
  add_link(from, to, speed);
}

void ListingReader::add_link(IbPort from, IbPort to, const Speed& speed) {
  if (from == to) refuse(fmt::format("port {} joined to itself", from.port), "another port");
  const auto here = link_at_.find(key_of(from)), there = link_at_.find(key_of(to));
  if (here == link_at_.end() && there == link_at_.end()) {
    link_at_[key_of(from)] = link_at_[key_of(to)] = listing_.links.size();
    listing_.links.push_back({from, to, speed.rate, speed.lanes, lines_.number()});
    return;
  }
  if (here == link_at_.end() || there == link_at_.end() || here->second != there->second) {
    const IbLink& other = listing_.links[(here == link_at_.end() ? there : here)->second];
    const IbPort taken = here == link_at_.end() ? to : from;
    refuse(fmt::format("port {} of {} joined to two ports", taken.port, to_text(taken.device)),
           fmt::format("the link of line {}, or this one", other.line));
  }
  list_again(listing_.links[here->second], from, speed);
}

void ListingReader::list_again(IbLink& link, IbPort from, const Speed& speed) {
  if (link.from_b || !(from == link.b))
    refuse(fmt::format("port {} for the second time", from.port),
           fmt::format("once; line {} has it", link.line));
  link.from_b = true;
  if (link.rate == speed.rate && link.lanes == speed.lanes) return;
  findings_.add("link-ends-disagree",
                fmt::format("lines {} and {} give one link different rates: the lower is taken", link.line,
                            lines_.number()));
  if (link.lanes == 0 || (speed.lanes != 0 && speed.rate < link.rate)) {
    link.rate = speed.rate;
    link.lanes = speed.lanes;
  }
}

void ListingReader::report_cut() {
  if (listing_.devices.empty()) refuse("no section", "Switch and Ca sections");
  std::vector<std::string> cut;
  for (const IbDevice& device : listing_.devices) {
    if (device.line == 0)
      cut.push_back(device.name.empty() ? fmt::format("{:016x}", device.guid) : device.name);
  }
  if (!cut.empty()) {
    findings_.add("sections-missing",
                  fmt::format("{} devices are named by others and have no section of their "
                              "own ({}): the listing was cut",
                              cut.size(), listed(cut, 4)));
  }
  std::size_t one_sided = 0;
  int line = 0;
  for (const IbLink& link : listing_.links) {
    if (link.from_b || listing_.devices[link.b.device].line == 0) continue;
    if (one_sided++ == 0) line = link.line;
  }
  if (one_sided > 0) {
    findings_.add("links-listed-once",
                  fmt::format("{} links (the first in line {}) are listed from one end only, "
                              "though the other has a section: counted",
                              one_sided, line));
  }
}

}  // namespace

bool is_aggregation(const IbDevice& device) {
  return device.kind == IbKind::adapter && device.name.find("Aggregation Node") != std::string::npos;
}

IbListing read_ib_listing(std::string_view text, const std::string& file, Findings& findings) {
  require_topology_size(text, file);
  return ListingReader(text, file, findings).read();
}

}  // namespace isthmus
