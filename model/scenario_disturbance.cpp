#include "model/scenario_disturbance.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/quantity.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_loads = 100, max_faults = 100;
constexpr std::int64_t max_background_flows = 1'000;

constexpr std::array<std::string_view, 4> on_names{"nic", "nvlink", "memory", "sm"};
constexpr std::array<std::string_view, 3> direction_names{"both", "out", "in"};
constexpr std::array<std::string_view, 3> side_names{"all", "train", "generate"};

template <class Names>
std::size_t name_at(const YamlValue& value, const Names& names) {
  const std::string form = fmt::format("{}", fmt::join(names, ", "));
  const auto found = std::find(names.begin(), names.end(), value.text(form));
  if (found == names.end()) value.refuse(form);
  return static_cast<std::size_t>(found - names.begin());
}

Duration read_time(const YamlValue& value) {
  const std::optional<Duration> time = parse_duration(value.text(time_form));
  if (!time) value.refuse(time_form);
  return *time;
}

void read_list(const YamlValue& mapping, std::string_view key, std::vector<int>& into) {
  const auto value = mapping.find(key);
  if (!value) return;
  for (const std::int64_t number : value->ranges(max_gpus)) into.push_back(static_cast<int>(number));
}

void read_amount(const YamlValue& value, BackgroundLoad& load) {
  const bool sm = load.on == BackgroundLoad::On::sm;
  if (const auto rate = value.find("rate")) {
    if (sm) rate->refuse("a rate of SMs", "share");
    if (value.find("share")) rate->refuse("rate beside share", "one of them");
    load.rate = parse_bandwidth(rate->text(rate_form));
    if (!load.rate) rate->refuse(rate_form);
    return;
  }
  const YamlValue share = value.at("share");
  const std::string form = sm ? "a share from 0 to 0.99" : "a share from 0 to 1";
  load.share = share.number(form);
  if (*load.share > (sm ? 0.99 : 1)) share.refuse(form);
}

BackgroundLoad read_load(const YamlValue& value) {
  value.allow_only({"on", "side", "hosts", "gpus", "direction", "share", "rate", "flows"});
  BackgroundLoad load;
  load.on = static_cast<BackgroundLoad::On>(name_at(value.at("on"), on_names));
  const bool port = load.on == BackgroundLoad::On::nic || load.on == BackgroundLoad::On::nvlink;
  if (const auto side = value.find("side")) {
    load.side = static_cast<BackgroundLoad::Side>(name_at(*side, side_names));
  }
  if (const auto direction = value.find("direction")) {
    if (!port) direction->refuse("a direction of what has none", "it with nic and nvlink");
    load.direction = static_cast<BackgroundLoad::Direction>(name_at(*direction, direction_names));
  }
  read_list(value, "hosts", load.hosts);
  read_list(value, "gpus", load.gpus);
  if (const auto flows = value.find("flows"); flows && load.on == BackgroundLoad::On::sm) {
    flows->refuse("flows of SMs", "share");
  }
  read_count(value, "flows", load.flows, max_background_flows);
  read_amount(value, load);
  return load;
}

MachineFault read_fault(const YamlValue& value) {
  value.allow_only({"at", "what", "change", "until"});
  MachineFault fault;
  fault.at = read_time(value.at("at"));
  const YamlValue what = value.at("what");
  const auto subject = parse_fault_subject(what.text(fault_subject_form));
  if (!subject) what.refuse(fault_subject_form);
  fault.what = *subject;
  if (const auto share = value.find("change")) {
    constexpr std::string_view form = "the share of its capacity that is left: 0 (failed), or 0.001 to 1";
    fault.share = share->number(form);
    if (fault.share > 1 || (fault.share != 0 && fault.share < least_fault_share)) share->refuse(form);
  }
  if (const auto until = value.find("until")) {
    fault.until = read_time(*until);
    if (*fault.until <= fault.at) until->refuse("a time after at");
  }
  return fault;
}

FailureRule read_rule(const YamlValue& value) {
  value.allow_only({"policy", "timeout"});
  FailureRule rule;
  if (const auto policy = value.find("policy")) {
    constexpr std::string_view form = "stop, retry or reroute";
    const auto known = parse_failed_steps(policy->text(form));
    if (!known) policy->refuse(form);
    rule.policy = *known;
  }
  if (const auto timeout = value.find("timeout")) {
    rule.timeout = read_time(*timeout);
    if (rule.timeout.value == 0) timeout->refuse("a time above zero with its unit, such as 1 s");
  }
  return rule;
}

std::string numbers_yaml(std::string_view key, const std::vector<int>& numbers) {
  return numbers.empty() ? "" : fmt::format(", {}: [{}]", key, fmt::join(numbers, ", "));
}

std::string load_yaml(const BackgroundLoad& load) {
  std::string text = fmt::format("  - {{on: {}", on_names.at(static_cast<std::size_t>(load.on)));
  if (load.side != BackgroundLoad::Side::all) {
    text += fmt::format(", side: {}", side_names.at(static_cast<std::size_t>(load.side)));
  }
  text += numbers_yaml("hosts", load.hosts) + numbers_yaml("gpus", load.gpus);
  if (load.direction != BackgroundLoad::Direction::both) {
    text += fmt::format(", direction: {}", direction_names.at(static_cast<std::size_t>(load.direction)));
  }
  if (load.share) text += fmt::format(", share: {}", *load.share);
  if (load.rate) text += fmt::format(", rate: {}", to_string(*load.rate));
  if (load.flows != 1) text += fmt::format(", flows: {}", load.flows);
  return text + "}\n";
}

std::string fault_yaml(const MachineFault& fault) {
  return fmt::format("  - {{at: {}, what: {}, change: {}{}}}\n", to_string(fault.at),
                     yaml_text(to_string(fault.what)), fault.share,
                     fault.until ? fmt::format(", until: {}", to_string(*fault.until)) : "");
}

}  // namespace

Disturbances read_disturbances(const YamlValue& root) {
  Disturbances result;
  if (const auto loads = root.find("background")) {
    for (const YamlValue& item : loads->items(max_loads)) result.background.push_back(read_load(item));
  }
  if (const auto faults = root.find("faults")) {
    for (const YamlValue& item : faults->items(max_faults)) result.faults.push_back(read_fault(item));
  }
  if (const auto rule = root.find("failed_steps")) result.failed_steps = read_rule(*rule);
  return result;
}

std::string disturbances_yaml(const Disturbances& disturbances) {
  std::string text;
  if (!disturbances.background.empty()) text += "background:\n";
  for (const BackgroundLoad& load : disturbances.background) text += load_yaml(load);
  if (!disturbances.faults.empty()) text += "faults:\n";
  for (const MachineFault& fault : disturbances.faults) text += fault_yaml(fault);
  const FailureRule& rule = disturbances.failed_steps;
  if (rule == FailureRule{}) return text;
  return text + fmt::format("failed_steps: {{policy: {}, timeout: {}}}\n", to_string(rule.policy),
                            to_string(rule.timeout));
}

}  // namespace isthmus
