#include "model/topology/nccl_log_block.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::string_view header = "=== System :";
constexpr std::string_view mark = "NCCL INFO ";
constexpr std::int64_t most_gigabytes_per_second = 100'000;

struct LogLine {
  std::string source;  // the process that printed it; empty without prefix
  std::string_view content;
};

/// "host:process:thread [device]" before NCCL INFO; what stands further left may change from line to line.
LogLine split_prefix(std::string_view line) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return {{}, line};
  const std::vector<std::string_view> words = words_of(line.substr(0, at));
  std::string source = "NCCL";
  for (std::size_t i = words.size() - std::min<std::size_t>(words.size(), 2); i < words.size(); ++i)
    source += fmt::format(" {}", words[i]);
  return {std::move(source), line.substr(at + mark.size())};
}

std::optional<LogKind> parse_kind(std::string_view word) {
  if (word == "GPU" || word == "DEV") return LogKind::gpu;  // DEV: the device under a GPU, of the same id
  if (word == "PCI") return LogKind::pci;
  if (word == "NVS") return LogKind::nvs;
  if (word == "CPU") return LogKind::cpu;
  if (word == "NIC") return LogKind::nic;
  if (word == "NET") return LogKind::net;
  return std::nullopt;
}

/// What NCCL joins with links of the kind; nullopt for kinds that are not read.
std::optional<LogLinkKind> parse_link(std::string_view word, LogKind from, LogKind to) {
  const auto wired = [](LogKind kind) { return kind == LogKind::gpu || kind == LogKind::cpu; };
  const bool below_pci = to == LogKind::gpu || to == LogKind::pci || to == LogKind::nic;
  if (word == "NVL" && (wired(from) || from == LogKind::nvs) && (wired(to) || to == LogKind::nvs))
    return LogLinkKind::nvl;
  if (word == "C2C" && wired(from) && wired(to) && from != to) return LogLinkKind::c2c;
  if (word == "PCI" && (from == LogKind::cpu || from == LogKind::pci) && below_pci) return LogLinkKind::pci;
  if (word == "SYS" && from == LogKind::cpu && to == LogKind::cpu) return LogLinkKind::sys;
  if (word == "NET" && from == LogKind::nic && to == LogKind::net) return LogLinkKind::net;
  return std::nullopt;
}

class BlockReader {
 public:
  BlockReader(std::string_view text, const std::string& file, Findings& findings)
      : lines_(text), file_(file), findings_(findings) {}

  LogBlock read();

 private:
  [[noreturn]] void refuse(std::string_view found, std::string_view allowed) const {
    throw InputError({file_, lines_.number(), "System"}, found, allowed);
  }
  void read_line(std::string_view content);
  void read_root(std::string_view content);
  void read_link(std::string_view content, std::size_t indent);
  /// "GPU/0-68000 (8)"; nullopt for a kind that is not read.
  std::optional<std::uint32_t> vertex_of(std::string_view text);
  std::uint32_t number_of(LogKind kind, std::uint64_t host, std::uint64_t id);
  void hang(std::uint32_t parent, std::uint32_t child, Bandwidth rate);
  void add_link(const LogLink& link);

  struct Place {
    std::size_t column;  // where the name of the vertex begins
    std::optional<std::uint32_t> vertex;
  };

  TextLines lines_;
  const std::string& file_;
  Findings& findings_;
  LogBlock block_;
  std::vector<Place> open_;  // from the root to the line above
  std::map<std::tuple<LogKind, std::uint64_t, std::uint64_t>, std::uint32_t> numbers_;
  std::map<std::uint64_t, std::uint32_t> hosts_;
  std::set<std::uint32_t> roots_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, LogLinkKind>> linked_;
};

LogBlock BlockReader::read() {
  bool inside = false, ended = false;
  std::string source;
  std::size_t more = 0;
  for (std::string_view line; lines_.next(line);) {
    if (ended || !inside) {
      if (line.find(header) == std::string_view::npos) continue;
      LogLine split = split_prefix(line);
      if (ended) ++more;
      if (!ended) source = std::move(split.source);
      inside = true;
      continue;
    }
    const LogLine split = split_prefix(line);
    if (line.find(header) != std::string_view::npos) ++more;
    if (split.source != source) continue;
    const std::string_view content = split.content;
    if (trimmed(content).empty()) continue;
    ended = trimmed(content).find_first_not_of('=') == std::string_view::npos;
    if (!ended) read_line(content);
  }
  if (!inside)
    refuse("no line \"=== System : ...\"", "the log of a run with NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=GRAPH");
  if (block_.vertices.empty()) refuse("a system block without a line", "CPUs, and what hangs on them");
  if (!ended) findings_.add("block-cut", "the system block has no last line of = signs: the log may be cut");
  if (more > 0)
    findings_.add("more-blocks",
                  fmt::format("{} more system blocks, of other processes or later: not read", more));
  block_.hosts = static_cast<std::uint32_t>(hosts_.size());
  return std::move(block_);
}

void BlockReader::read_line(std::string_view content) {
  const std::size_t indent = content.find_first_not_of(' ');
  if (indent == std::string_view::npos || content[indent] != '+') return read_root(content);
  read_link(content, indent);
}

void BlockReader::read_root(std::string_view content) {
  open_.clear();
  const auto vertex = content.starts_with(' ') ? std::nullopt : vertex_of(content);
  if (!vertex || block_.vertices[*vertex].kind != LogKind::cpu) {
    refuse(fmt::format("\"{}\"", printable(trimmed(content))),
           "CPU/..., a link that begins with +, or the last line of = signs");
  }
  if (!roots_.insert(*vertex).second) refuse("the same CPU twice", "each CPU once");
  open_.push_back({0, vertex});
}

/// + PCI[48.0] - GPU/0-68000 (8), below the name of the vertex that it starts from.
void BlockReader::read_link(std::string_view content, std::size_t indent) {
  while (!open_.empty() && open_.back().column > indent) open_.pop_back();
  if (open_.empty() || open_.back().column != indent)
    refuse(fmt::format("a link {} columns in", indent),
           "one that begins below the name of an earlier vertex");
  const std::size_t bracket = content.find('['), end = content.find(']');
  const std::size_t dash = content.find(" - ");
  const bool formed = bracket < end && end < dash && dash != std::string_view::npos;
  const std::string_view kind = formed ? trimmed(content.substr(indent + 1, bracket - indent - 1)) : "";
  const auto rate = formed ? decimal_in_billionths(content.substr(bracket + 1, end - bracket - 1),
                                                   most_gigabytes_per_second)
                           : std::nullopt;
  if (!rate) {
    refuse(fmt::format("\"{}\"", printable(trimmed(content))),
           fmt::format("+ KIND[rate in GB/s, at most {}] - VERTEX", most_gigabytes_per_second));
  }
  const std::optional<std::uint32_t> from = open_.back().vertex;
  const std::optional<std::uint32_t> to = from ? vertex_of(content.substr(dash + 3)) : std::nullopt;
  open_.push_back({dash + 3, to});
  if (from && !to) {
    findings_.add("unknown-part", fmt::format("line {}: {} is left out with all below it", lines_.number(),
                                              printable(trimmed(content.substr(dash + 3)))));
  }
  if (!from || !to || (kind == "LOC" && *from == *to)) return;
  if (*from == *to) {
    findings_.add("link-to-itself", fmt::format("line {}: a link from a vertex to itself is left out; its "
                                                "real far end is not in the file",
                                                lines_.number()));
    return;
  }
  const auto link = parse_link(kind, block_.vertices[*from].kind, block_.vertices[*to].kind);
  if (!link) {
    refuse(fmt::format("a link {} to {}", printable(kind), printable(trimmed(content.substr(dash + 3)), 40)),
           "NVL, C2C, PCI, SYS and NET between what NCCL joins with them");
  }
  if (*link == LogLinkKind::pci || *link == LogLinkKind::net) return hang(*from, *to, Bandwidth{*rate});
  add_link({*from, *to, *link, Bandwidth{*rate}});
}

std::optional<std::uint32_t> BlockReader::vertex_of(std::string_view text) {
  const std::string_view form = "KIND/HOST-ID or KIND/ID in base 16, then details in round brackets";
  const std::string_view name = text.substr(0, text.find_first_of(" \t"));
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) refuse(fmt::format("\"{}\"", printable(text, 40)), form);
  const std::string_view ids = name.substr(slash + 1);
  const std::size_t dash = ids.find('-');
  const bool has_host = dash != std::string_view::npos;
  const auto host = whole_number(has_host ? ids.substr(0, dash) : "0", 16, ~std::uint64_t{0});
  const auto id = whole_number(has_host ? ids.substr(dash + 1) : ids, 16, ~std::uint64_t{0});
  if (!host || !id) refuse(fmt::format("\"{}\"", printable(text, 40)), form);
  const auto kind = parse_kind(name.substr(0, slash));
  if (!kind) return std::nullopt;
  const std::uint32_t number = number_of(*kind, *host, *id);
  const std::size_t open = text.find('('), close = text.rfind(')');
  LogVertex& vertex = block_.vertices[number];
  if (open < close && close != std::string_view::npos && vertex.details.empty()) {
    std::string_view details = text.substr(open + 1, close - open - 1);
    for (std::size_t at = 0; at <= details.size();) {
      const std::size_t end = std::min(details.find('/', at), details.size());
      vertex.details.push_back(topology_name(details.substr(at, end - at)));
      at = end + 1;
    }
  }
  return number;
}

std::uint32_t BlockReader::number_of(LogKind kind, std::uint64_t host, std::uint64_t id) {
  const auto next = static_cast<std::uint32_t>(block_.vertices.size());
  const auto [place, is_new] = numbers_.emplace(std::tuple{kind, host, id}, next);
  if (!is_new) return place->second;
  if (next >= max_log_vertices)
    refuse(fmt::format("more than {} vertices", max_log_vertices), "the vertices of one NVLink domain");
  const std::uint32_t number = hosts_.emplace(host, static_cast<std::uint32_t>(hosts_.size())).first->second;
  block_.vertices.push_back({kind, number, id});
  return next;
}

void BlockReader::hang(std::uint32_t parent, std::uint32_t child, Bandwidth rate) {
  LogVertex& below = block_.vertices[child];
  if (below.parent && below.kind == LogKind::net) {
    findings_.add("port-repeated", fmt::format("line {}: the same NET for the second time: one port, at its "
                                               "first place",
                                               lines_.number()));
    return;
  }
  if (below.parent) refuse("the same vertex below two others", "each vertex in one place");
  if (below.host != block_.vertices[parent].host) refuse("PCI between two hosts", "one host");
  below.parent = parent;
  below.up = rate;
}

void BlockReader::add_link(const LogLink& link) {
  if (!linked_.emplace(link.from, link.to, link.kind).second)
    refuse("the same link twice", "links of one kind once, with their rate in all");
  if (block_.links.size() >= max_log_links)
    refuse(fmt::format("more than {} links", max_log_links), "the links of one NVLink domain");
  block_.links.push_back(link);
}

}  // namespace

LogBlock read_log_block(std::string_view text, const std::string& file, Findings& findings) {
  require_topology_size(text, file);
  return BlockReader(text, file, findings).read();
}

}  // namespace isthmus
