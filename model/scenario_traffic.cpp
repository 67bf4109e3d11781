#include "model/scenario_traffic.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/quantity.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"
#include "model/topology/nccl_settings.hpp"
#include "model/traffic_channels.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_flows = 100'000, max_rings = 1'000, max_baseline = 100;
constexpr std::int64_t max_setting = std::int64_t{1} << 40;
constexpr double min_ratio = 1e-4, max_ratio = 1e6;  // without exponent in text

constexpr std::array<std::string_view, 6> pattern_names{"pair",  "flows",      "all-to-all",
                                                        "shift", "all-reduce", "rings"};

std::string_view name_of(TrafficPattern pattern) {
  return pattern_names.at(static_cast<std::size_t>(pattern));
}

Bytes read_bytes(const YamlValue& value) {
  const std::optional<Bytes> bytes = parse_bytes(value.text(size_form));
  if (!bytes || bytes->value > max_tensor_bytes)
    value.refuse(fmt::format("{}, at most 2^60 bytes", size_form));
  return *bytes;
}

std::vector<int> read_gpus(const YamlValue& value) {
  std::vector<int> gpus;
  for (const std::int64_t gpu : value.ranges(max_gpus)) gpus.push_back(static_cast<int>(gpu));
  return gpus;
}

TrafficFlow read_flow(const YamlValue& value, bool with_bytes) {
  std::vector<std::string_view> keys{"from", "to"};
  if (with_bytes) keys.push_back("bytes");
  value.allow_only(keys);
  TrafficFlow flow;
  flow.from = static_cast<int>(value.at("from").integer(0, max_gpus - 1));
  flow.to = static_cast<int>(value.at("to").integer(0, max_gpus - 1));
  if (flow.from == flow.to) value.at("to").refuse(fmt::format("{}, as from", flow.to), "another GPU");
  if (const auto bytes = value.find("bytes")) flow.bytes = read_bytes(*bytes);
  return flow;
}

void read_pattern(const YamlValue& value, TrafficSpec& spec) {
  switch (spec.pattern) {
    case TrafficPattern::pair: spec.flows.push_back(read_flow(value, false)); return;
    case TrafficPattern::flows:
      for (const YamlValue& item : value.items(max_flows)) spec.flows.push_back(read_flow(item, true));
      return;
    case TrafficPattern::rings:
      for (const YamlValue& ring : value.items(max_rings)) {
        spec.rings.push_back(read_gpus(ring));
        if (spec.rings.back().size() < 2) ring.refuse("a ring of one GPU", "at least two GPUs");
      }
      return;
    case TrafficPattern::all_to_all:
    case TrafficPattern::shift:
    case TrafficPattern::all_reduce: break;
  }
  value.allow_only({"gpus"});
  spec.gpus = read_gpus(value.at("gpus"));
  if (spec.gpus.size() < 2) value.at("gpus").refuse("one GPU", "at least two GPUs");
}

void read_channels(const YamlValue& value, TrafficSpec& spec) {
  if (const auto channels = value.find("channels")) {
    spec.nccl_channels = channels->node().kind == YamlNode::Kind::scalar && channels->node().text == "nccl";
    if (!spec.nccl_channels) {
      const bool number = channels->node().kind == YamlNode::Kind::scalar && !channels->node().text.empty() &&
                          channels->node().text.front() >= '0' && channels->node().text.front() <= '9';
      if (!number) channels->refuse("nccl, or a number of channels");
      spec.channels = static_cast<int>(channels->integer(1, nccl_max_channels));
    }
  }
  const auto settings = value.find("nccl");
  if (!settings) return;
  if (!spec.nccl_channels) settings->refuse("these settings", "them with channels: nccl only");
  const std::vector<std::string_view> names = nccl_setting_names();
  settings->allow_only(names);
  for (const std::string_view name : names) {
    if (const auto setting = settings->find(name)) {
      spec.nccl[std::string(name)] = setting->integer(0, max_setting);
    }
  }
}

/// A value as YAML text of one line that reads back to the same value.
std::string flow_text(const YamlNode& node) {
  std::vector<std::string> items;
  switch (node.kind) {
    case YamlNode::Kind::nothing: return "null";
    case YamlNode::Kind::scalar: {
      const bool plain = !node.quoted && !node.text.empty() &&
                         node.text.find_first_of(",[]{}#:&*!|>'\"%@`\\") == std::string::npos;
      return plain ? node.text : yaml_text(node.text);
    }
    case YamlNode::Kind::list:
      for (const YamlNode& child : node.children) items.push_back(flow_text(child));
      return fmt::format("[{}]", fmt::join(items, ", "));
    case YamlNode::Kind::mapping: break;
  }
  for (const YamlNode& child : node.children) {
    items.push_back(fmt::format("{}: {}", yaml_text(child.key), flow_text(child)));
  }
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

void read_baseline(const YamlValue& value, TrafficSpec& spec) {
  constexpr std::string_view form =
      "dotted keys below fabric, traffic or calibration with their values: {fabric.edits: none}";
  if (!value.is_mapping() || value.node().children.empty()) value.refuse(form);
  if (value.node().children.size() > max_baseline) value.refuse("too many keys", "at most 100");
  for (const YamlNode& child : value.node().children) {
    const std::string_view top = std::string_view(child.key).substr(0, child.key.find('.'));
    const bool own = child.key.starts_with("traffic.baseline") || child.key.starts_with("traffic.published");
    if ((top != "fabric" && top != "traffic" && top != "calibration") || own ||
        yaml_text(child.key) != child.key)
      value.refuse(fmt::format("the key '{}'", printable(child.key)), form);
    std::string text = flow_text(child);
    if (first_unprintable(text) != text.size()) value.refuse("a value of several lines", form);
    spec.baseline.emplace_back(child.key, std::move(text));
  }
}

void read_ratio(const YamlValue& value, PublishedRatio& row) {
  constexpr std::string_view form = "a ratio from 0.0001 to 1000000, or [low, high] with low at most high";
  if (value.is_list()) {
    const std::vector<YamlValue> ends = value.items(2);
    if (ends.size() != 2) value.refuse("a list of one item", form);
    row.low = ends[0].number(form);
    row.high = ends[1].number(form);
  } else {
    row.low = row.high = value.number(form);
  }
  if (*row.low < min_ratio || *row.low > *row.high || *row.high > max_ratio) value.refuse(form);
}

std::vector<PublishedRatio> read_published(const YamlValue& value) {
  std::vector<PublishedRatio> rows;
  for (const YamlValue& item : value.items(max_published)) {
    item.allow_only({"id", "ratio", "healthy", "edited", "symptom", "source"});
    PublishedRatio row;
    row.id = item.at("id").text("a short name of this row");
    const auto same_id = [&](const PublishedRatio& other) { return other.id == row.id; };
    if (std::any_of(rows.begin(), rows.end(), same_id)) {
      item.at("id").refuse(fmt::format("'{}' a second time", printable(row.id)), "each id once");
    }
    if (const auto ratio = item.find("ratio")) read_ratio(*ratio, row);
    if (const auto text = item.find("healthy")) row.healthy = text->text("the healthy rate, as published");
    if (const auto text = item.find("edited")) row.edited = text->text("the other rate, as published");
    row.symptom = item.at("symptom").text("one line: what people saw");
    row.source = item.at("source").text("one line that says where it was published");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string gpu_list(const std::vector<int>& gpus) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < gpus.size();) {
    std::size_t last = first;
    while (last + 1 < gpus.size() && gpus[last + 1] == gpus[last] + 1) ++last;
    runs.push_back(first == last ? fmt::format("{}", gpus[first])
                                 : fmt::format("{}-{}", gpus[first], gpus[last]));
    first = last + 1;
  }
  return fmt::format("[{}]", fmt::join(runs, ", "));
}

std::string flow_yaml(const TrafficFlow& flow) {
  return fmt::format("{{from: {}, to: {}{}}}", flow.from, flow.to,
                     flow.bytes ? fmt::format(", bytes: {}", to_string(*flow.bytes)) : "");
}

std::string pattern_yaml(const TrafficSpec& spec) {
  std::vector<std::string> items;
  for (const TrafficFlow& flow : spec.flows) items.push_back(flow_yaml(flow));
  for (const std::vector<int>& ring : spec.rings) items.push_back(gpu_list(ring));
  switch (spec.pattern) {
    case TrafficPattern::pair: return items.front();
    case TrafficPattern::flows:
    case TrafficPattern::rings: return fmt::format("[{}]", fmt::join(items, ", "));
    case TrafficPattern::all_to_all:
    case TrafficPattern::shift:
    case TrafficPattern::all_reduce: break;
  }
  return fmt::format("{{gpus: {}}}", gpu_list(spec.gpus));
}

std::string published_yaml(const PublishedRatio& row) {
  std::string text = fmt::format("    - {{id: {}", yaml_text(row.id));
  if (row.low && row.low == row.high) text += fmt::format(", ratio: {}", *row.low);
  if (row.low && row.low != row.high) text += fmt::format(", ratio: [{}, {}]", *row.low, *row.high);
  if (!row.healthy.empty()) text += fmt::format(", healthy: {}", yaml_text(row.healthy));
  if (!row.edited.empty()) text += fmt::format(", edited: {}", yaml_text(row.edited));
  return text + fmt::format(", symptom: {}, source: {}}}\n", yaml_text(row.symptom), yaml_text(row.source));
}

}  // namespace

TrafficSpec read_traffic(const YamlValue& value) {
  std::vector<std::string_view> keys(pattern_names.begin(), pattern_names.end());
  keys.insert(keys.end(), {"bytes", "channels", "nccl", "baseline", "expected", "published"});
  value.allow_only(keys);
  TrafficSpec spec;
  std::optional<YamlValue> pattern;
  for (std::size_t i = 0; i < pattern_names.size(); ++i) {
    const auto found = value.find(pattern_names[i]);
    if (!found) continue;
    if (pattern) found->refuse("a second pattern", "one pattern per scenario");
    pattern = found;
    spec.pattern = static_cast<TrafficPattern>(i);
  }
  if (!pattern) value.refuse("no pattern", fmt::format("one of {}", fmt::join(pattern_names, ", ")));
  read_pattern(*pattern, spec);
  if (const auto bytes = value.find("bytes")) spec.bytes = read_bytes(*bytes);
  read_channels(value, spec);
  if (const auto baseline = value.find("baseline")) read_baseline(*baseline, spec);
  if (const auto expected = value.find("expected")) {
    constexpr std::string_view form = "the ratio from 0.0001 to 1000000 that arithmetic gives";
    spec.expected = expected->number(form);
    if (*spec.expected < min_ratio || *spec.expected > max_ratio) expected->refuse(form);
  }
  if (const auto published = value.find("published")) spec.published = read_published(*published);
  return spec;
}

std::string traffic_yaml(const TrafficSpec& spec) {
  std::string text = fmt::format("traffic:\n  {}: {}\n  bytes: {}\n", name_of(spec.pattern),
                                 pattern_yaml(spec), to_string(spec.bytes));
  if (spec.nccl_channels) text += "  channels: nccl\n";
  if (spec.channels) text += fmt::format("  channels: {}\n", *spec.channels);
  std::vector<std::string> items;
  for (const auto& [name, setting] : spec.nccl) items.push_back(fmt::format("{}: {}", name, setting));
  if (!items.empty()) text += fmt::format("  nccl: {{{}}}\n", fmt::join(items, ", "));
  items.clear();
  for (const auto& [key, setting] : spec.baseline) items.push_back(fmt::format("{}: {}", key, setting));
  if (!items.empty()) text += fmt::format("  baseline: {{{}}}\n", fmt::join(items, ", "));
  if (spec.expected) text += fmt::format("  expected: {}\n", *spec.expected);
  if (!spec.published.empty()) text += "  published:\n";
  for (const PublishedRatio& row : spec.published) text += published_yaml(row);
  return text;
}

}  // namespace isthmus
