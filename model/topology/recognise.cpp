#include <array>

#include "model/topology/importers.hpp"
#include "model/topology/nvidia_smi_matrix.hpp"
#include "model/topology/topology_text.hpp"

namespace isthmus {
namespace {

bool skip_past(std::string_view& text, std::string_view opening, std::string_view closing) {
  if (!text.starts_with(opening)) return false;
  const std::size_t end = text.find(closing, opening.size());
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + closing.size());
  return true;
}

/// By the name of the root element; comments and declarations may stand before it.
std::optional<TopologyFormat> recognise_xml(std::string_view text) {
  do {
    text = trimmed(text);
  } while (skip_past(text, "<!--", "-->") || skip_past(text, "<?", "?>") || skip_past(text, "<!", ">"));
  if (!text.starts_with('<')) return std::nullopt;
  const std::string_view name = text.substr(1, text.find_first_of(" \t\r\n/>", 1) - 1);
  if (name == "system") return TopologyFormat::nccl_xml;
  if (name == "graphs") return TopologyFormat::nccl_graph;
  return std::nullopt;
}

bool begins_ib_section(std::string_view line) {
  if (line.starts_with("switchguid=0x") || line.starts_with("caguid=0x")) return true;
  if (line.starts_with("Switch")) return line.find("\"S-") != std::string_view::npos;
  return line.starts_with("Ca") && line.find("\"H-") != std::string_view::npos;
}

}  // namespace

std::string_view to_string(TopologyFormat format) {
  constexpr std::array<std::string_view, 6> names{"NCCL's system XML",        "NCCL's graph XML",
                                                  "nvidia-smi topo -m",       "ibnetdiscover",
                                                  "system block of NCCL log", "JSON"};
  return names.at(static_cast<std::size_t>(format));
}

std::optional<TopologyFormat> recognise_topology(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::string_view content = trimmed(text);
  if (content.starts_with('<')) return recognise_xml(content);
  if (content.starts_with('{')) return TopologyFormat::json;
  TextLines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (line.find("=== System :") != std::string_view::npos) return TopologyFormat::nccl_log;
    if (begins_ib_section(line)) return TopologyFormat::ibnetdiscover;
    if (is_smi_header(line)) return TopologyFormat::nvidia_smi;
  }
  return std::nullopt;
}

}  // namespace isthmus
