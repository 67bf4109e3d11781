#include "report/topology.hpp"

#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/topology/findings.hpp"
#include "model/topology/names.hpp"
#include "model/topology/summary.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<VertexKind, 4> tiers{VertexKind::leaf, VertexKind::spine, VertexKind::core,
                                          VertexKind::gateway};

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::optional<Bandwidth>& rate) { return rate ? Json(rate->value) : Json(nullptr); }

/// What the reader told of, it told with the file's own names: no second time under the same code.
std::vector<Finding> all_findings(const ImportedTopology& imported) {
  std::set<std::string> told;
  for (const Finding& finding : imported.findings) told.insert(finding.code);
  std::vector<Finding> findings = imported.findings;
  for (Finding& finding : topology_findings(imported.topology)) {
    if (told.count(finding.code) == 0) findings.push_back(std::move(finding));
  }
  return findings;
}

Json to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back({{"code", finding.code}, {"text", finding.text}});
  return list;
}

Json to_json(const std::vector<RateCount>& rates) {
  Json list = Json::array();
  for (const RateCount& each : rates)
    list.push_back({{"bytes_per_second", or_null(each.rate)}, {"gpus", each.count}});
  return list;
}

Json types_json(const Topology& topology) {
  std::vector<std::uint64_t> times(topology.types.size());
  for (const std::uint32_t type : topology.blocks) ++times[type];
  Json list = Json::array();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Block& block = topology.types[i];
    list.push_back({{"name", block.name},
                    {"times", times[i]},
                    {"hosts", block.hosts},
                    {"gpus", block.gpus.size()},
                    {"nics", block.nics.size()}});
  }
  return list;
}

std::string json_document(const Topology& topology, const TopologySummary& summary,
                          const std::vector<Finding>& findings) {
  Json switches = Json::object(), oversubscription = Json::array();
  for (std::size_t tier = 0; tier < tiers.size(); ++tier)
    switches[std::string(to_string(tiers.at(tier)))] = summary.switches.at(tier);
  for (const RatioCount& each : summary.leaf_oversubscription)
    oversubscription.push_back({{"ratio", each.ratio}, {"leaves", each.count}});
  const Json document{{"name", topology.name},
                      {"hosts", summary.hosts},
                      {"gpus", or_null(summary.gpus)},
                      {"nics", summary.nics},
                      {"nvlink_domains", or_null(summary.nvlink_domains)},
                      {"nvlinks", or_null(summary.nvlinks)},
                      {"rails", summary.rails},
                      {"blocks", summary.blocks},
                      {"types", types_json(topology)},
                      {"nvlink_per_gpu", to_json(summary.nvlink_per_gpu)},
                      {"host_per_gpu", to_json(summary.host_per_gpu)},
                      {"nic_per_gpu", to_json(summary.nic_per_gpu)},
                      {"switches", std::move(switches)},
                      {"host_cables", summary.host_cables},
                      {"switch_cables", summary.switch_cables},
                      {"unplugged_nics", summary.unplugged_nics},
                      {"leaf_oversubscription", std::move(oversubscription)},
                      {"bisection_bytes_per_second", or_null(summary.bisection)},
                      {"findings", to_json(findings)}};
  return document.dump(2) + "\n";
}

template <class Value>
std::string or_unknown(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "unknown";
}

std::string rates_text(std::string_view what, const std::vector<RateCount>& rates) {
  std::string text;
  for (const RateCount& each : rates) {
    const std::string rate = !each.rate                  ? "unknown"
                             : *each.rate == Bandwidth{} ? "none"
                                                         : rate_text(*each.rate);
    text += fmt::format("{}{} ({} GPUs)", text.empty() ? "" : ", ", rate, each.count);
  }
  return text.empty() ? text : fmt::format("{:<18}{}\n", what, text);
}

std::string network_text(const TopologySummary& summary) {
  std::string text;
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    if (summary.switches.at(tier) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", summary.switches.at(tier),
                        display_name(tiers.at(tier)));
  }
  if (text.empty()) return "";
  text = fmt::format("{:<18}{}\n{:<18}{} to hosts, {} between switches\n", "switches", text, "cables",
                     summary.host_cables, summary.switch_cables);
  std::string ratios;
  for (const RatioCount& each : summary.leaf_oversubscription)
    ratios += fmt::format("{}{:.4g}:1 ({} leaves)", ratios.empty() ? "" : ", ", each.ratio, each.count);
  if (!ratios.empty()) text += fmt::format("{:<18}{}\n", "oversubscription", ratios);
  return text + fmt::format("{:<18}{}\n", "bisection",
                            summary.bisection ? rate_text(*summary.bisection) : "unknown");
}

std::string findings_text(const std::vector<Finding>& findings) {
  if (findings.empty()) return "nothing stands out\n";
  std::string text = "findings:\n";
  for (const Finding& finding : findings) text += fmt::format("  {}: {}\n", finding.code, finding.text);
  return text;
}

/// What the channels of a graph file visit.
struct Visited {
  std::set<std::uint32_t> hosts;
  std::set<std::pair<std::uint32_t, std::uint32_t>> gpus, nics;

  explicit Visited(const NcclGraphFile& file) {
    for (const NcclGraph& graph : file.graphs)
      for (const auto& channel : graph.channels)
        for (const NcclChannelStop& stop : channel) {
          hosts.insert(stop.host);
          (stop.net ? nics : gpus).emplace(stop.host, stop.dev);
        }
  }
};

std::string_view kind_name(const NcclGraph& graph) {
  constexpr std::array<std::string_view, 5> names{"ring", "tree", "CollNet chain", "NVLS", "CollNet direct"};
  return graph.id >= 0 && graph.id < 5 ? names.at(static_cast<std::size_t>(graph.id)) : "unknown";
}

Json to_json(const NcclGraph& graph) {
  Json channels = Json::array();
  for (const auto& channel : graph.channels) {
    Json stops = Json::array();
    for (const NcclChannelStop& stop : channel) {
      Json each{{stop.net ? "net" : "gpu", stop.dev}, {"host", stop.host}};
      if (stop.rank) each["rank"] = *stop.rank;
      stops.push_back(std::move(each));
    }
    channels.push_back(std::move(stops));
  }
  return {{"id", graph.id},
          {"kind", kind_name(graph)},
          {"pattern", graph.pattern},
          {"channel_count", graph.channels.size()},
          {"gigabytes_per_second_intra", graph.speed_intra},
          {"gigabytes_per_second_inter", graph.speed_inter},
          {"type_intra", graph.type_intra},
          {"type_inter", graph.type_inter},
          {"cross_nic", graph.cross_nic},
          {"same_channels", graph.same_channels},
          {"latency_inter_microseconds", or_null(graph.latency_inter)},
          {"channels", std::move(channels)}};
}

std::string to_text(const NcclGraph& graph) {
  if (graph.channels.empty()) return fmt::format("{}: not available\n", kind_name(graph));
  std::string text = fmt::format("{}: {} channels, {} GB/s each inside ({}), {} GB/s between hosts ({})\n",
                                 kind_name(graph), graph.channels.size(), graph.speed_intra, graph.type_intra,
                                 graph.speed_inter, graph.type_inter);
  for (std::size_t channel = 0; channel < graph.channels.size(); ++channel) {
    text += fmt::format("  {:>2}:", channel);
    for (const NcclChannelStop& stop : graph.channels[channel])
      text += fmt::format(" {}{}", stop.net ? "NET" : "", stop.dev);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string topology_document(const ImportedTopology& imported, bool json) {
  const Topology& topology = imported.topology;
  const TopologySummary summary = summarise(topology);
  const std::vector<Finding> findings = all_findings(imported);
  if (json) return json_document(topology, summary, findings);
  std::string text = fmt::format("{}: {} hosts, {} GPUs, {} NICs, {} NVLink domains, {} NVLinks, {} rails\n",
                                 topology.name.empty() ? "topology" : topology.name, summary.hosts,
                                 or_unknown(summary.gpus), summary.nics, or_unknown(summary.nvlink_domains),
                                 or_unknown(summary.nvlinks), summary.rails);
  text += rates_text("NVLink per GPU", summary.nvlink_per_gpu);
  text += rates_text("PCIe/C2C per GPU", summary.host_per_gpu);
  text += rates_text("NIC per GPU", summary.nic_per_gpu);
  return text + network_text(summary) + findings_text(findings);
}

std::string nccl_graph_document(const std::string& name, const NcclGraphFile& file, bool json) {
  const Visited visited(file);
  if (json) {
    Json graphs = Json::array();
    for (const NcclGraph& graph : file.graphs) graphs.push_back(to_json(graph));
    const Json document{{"name", name},
                        {"hosts", visited.hosts.size()},
                        {"gpus", visited.gpus.size()},
                        {"nics", visited.nics.size()},
                        {"nvlink_domains", nullptr},
                        {"nvlinks", nullptr},
                        {"graphs", std::move(graphs)},
                        {"findings", to_json(file.findings)}};
    return document.dump(2) + "\n";
  }
  std::string text = fmt::format("{}: NCCL graphs over {} GPUs and {} NICs\n", name, visited.gpus.size(),
                                 visited.nics.size());
  for (const NcclGraph& graph : file.graphs) text += to_text(graph);
  return text + findings_text(file.findings);
}

std::string difference_document(const std::string& first, const std::string& second,
                                const std::vector<Finding>& differences, bool json) {
  if (json) {
    const Json document{{"first", first},
                        {"second", second},
                        {"equal", differences.empty()},
                        {"differences", to_json(differences)}};
    return document.dump(2) + "\n";
  }
  if (differences.empty()) return fmt::format("{} and {} are the same machine\n", first, second);
  std::string text = fmt::format("first: {}\nsecond: {}\n", first, second);
  for (const Finding& each : differences) text += fmt::format("  {}: {}\n", each.code, each.text);
  return text;
}

}  // namespace isthmus::report
