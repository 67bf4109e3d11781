#include "model/scenario_fabric.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/quantity.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

using Action = FabricEdit::Action;
using Subject = FabricEdit::Subject;

constexpr std::size_t max_parts = 64, max_edits = 1'000;
constexpr std::int64_t max_switches = 1'048'576;

constexpr std::array<std::string_view, 5> action_names{"remove", "degrade", "disable", "swap", "cut"};
constexpr std::array<std::string_view, 12> subject_names{"nic",  "nvlink", "nvswitch", "uplink",
                                                         "pcie", "leaf",   "spine",    "gpudirect",
                                                         "pxn",  "mnnvl",  "nics",     "domain"};
constexpr std::array<std::string_view, 3> network_names{"superpod", "one-switch", "rails"};

struct Allowed {
  Action action;
  Subject subject;
};
constexpr std::array allowed_edits{
    Allowed{Action::remove, Subject::nic},       Allowed{Action::remove, Subject::nvlink},
    Allowed{Action::remove, Subject::nvswitch},  Allowed{Action::remove, Subject::uplink},
    Allowed{Action::remove, Subject::leaf},      Allowed{Action::remove, Subject::spine},
    Allowed{Action::degrade, Subject::nic},      Allowed{Action::degrade, Subject::nvlink},
    Allowed{Action::degrade, Subject::nvswitch}, Allowed{Action::degrade, Subject::uplink},
    Allowed{Action::degrade, Subject::pcie},     Allowed{Action::disable, Subject::gpudirect},
    Allowed{Action::disable, Subject::pxn},      Allowed{Action::disable, Subject::mnnvl},
    Allowed{Action::swap, Subject::nics},        Allowed{Action::cut, Subject::domain}};

std::string_view name_of(Subject subject) { return subject_names.at(static_cast<std::size_t>(subject)); }

/// The position of the text at `value` among names.
template <class Names>
std::size_t read_name(const YamlValue& value, const Names& names) {
  const std::string form = fmt::format("{}", fmt::join(names, ", "));
  const std::string text = value.text(form);
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    value.refuse(fmt::format("{}", fmt::join(closest_first(text, known), ", ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

void read_rate(const YamlValue& mapping, std::string_view key, std::optional<Bandwidth>& into) {
  const auto value = mapping.find(key);
  if (!value) return;
  into = parse_bandwidth(value->text(rate_form));
  if (!into) value->refuse(rate_form);
}

void read_numbers(const YamlValue& mapping, std::string_view key, std::int64_t end, std::vector<int>& into) {
  const auto value = mapping.find(key);
  if (!value) return;
  for (const std::int64_t number : value->ranges(end)) into.push_back(static_cast<int>(number));
}

FabricEdit read_edit(const YamlValue& value) {
  std::vector<std::string_view> keys{"hosts", "gpus", "switches", "wires", "factor", "bandwidth", "size"};
  keys.insert(keys.end(), action_names.begin(), action_names.end());
  value.allow_only(keys);
  FabricEdit edit;
  std::optional<YamlValue> what;
  for (std::size_t i = 0; i < action_names.size(); ++i) {
    const auto found = value.find(action_names[i]);
    if (!found) continue;
    if (what) found->refuse("one of remove, degrade, disable, swap, cut per edit");
    what = found;
    edit.action = static_cast<Action>(i);
  }
  if (!what) value.refuse("an edit: remove, degrade, disable, swap or cut, and what");
  std::vector<std::string_view> names;
  std::vector<Subject> subjects;
  for (const Allowed& allowed : allowed_edits) {
    if (allowed.action != edit.action) continue;
    subjects.push_back(allowed.subject);
    names.push_back(name_of(allowed.subject));
  }
  edit.subject = subjects[read_name(*what, names)];
  read_numbers(value, "hosts", max_gpus, edit.hosts);
  read_numbers(value, "gpus", max_gpus, edit.gpus);
  read_numbers(value, "switches", max_switches, edit.switches);
  read_count(value, "wires", edit.wires);
  read_count(value, "size", edit.size);
  if (const auto factor = value.find("factor")) edit.factor = factor->number("a share between 0 and 1");
  read_rate(value, "bandwidth", edit.bandwidth);
  return edit;
}

void read_routing(const YamlValue& value, Routing& routing) {
  if (const auto kind = value.find("routing")) {
    routing.hashed = read_name(*kind, std::array<std::string_view, 2>{"adaptive", "hashed"}) == 1;
  }
  if (const auto pxn = value.find("pxn")) routing.pxn = pxn->flag();
  if (const auto seed = value.find("hash_seed")) {
    routing.seed = static_cast<std::uint64_t>(seed->integer(0, std::int64_t{1} << 62));
  }
}

void read_source(const YamlValue& value, FabricSpec& spec) {
  if (const auto file = value.find("import")) {
    if (const auto preset = value.find("preset")) preset->refuse("preset or import, not both");
    spec.import_file = file->text("the path of a topology file, relative to the scenario");
    spec.preset.clear();
    read_count(value, "hosts", spec.hosts);
    return;
  }
  std::vector<std::string_view> known;
  for (const FabricPreset& preset : fabric_presets()) known.push_back(preset.name);
  const YamlValue preset = value.at("preset");
  spec.preset = preset.text("the name of a preset");
  if (std::find(known.begin(), known.end(), spec.preset) == known.end()) {
    preset.refuse(fmt::format("{}", fmt::join(closest_first(spec.preset, known), ", ")));
  }
  spec.hosts = read_count(value.at("hosts"));
}

FabricSpec read_part(const YamlValue& value) {
  FabricSpec spec;
  read_source(value, spec);
  read_rate(value, "nic_bandwidth", spec.nic_bandwidth);
  read_rate(value, "nvlink_bandwidth", spec.nvlink_bandwidth);
  read_rate(value, "pcie_bandwidth", spec.pcie_bandwidth);
  if (const auto network = value.find("network")) {
    spec.network = static_cast<NetworkKind>(read_name(*network, network_names));
  }
  if (const auto ratio = value.find("oversubscription")) {
    spec.oversubscription = ratio->number("bandwidth down over bandwidth up, 1 or more");
  }
  read_count(value, "gpus_per_rack", spec.gpus_per_rack);
  return spec;
}

constexpr std::array<std::string_view, 9> part_keys{"preset",        "import",           "hosts",
                                                    "nic_bandwidth", "nvlink_bandwidth", "pcie_bandwidth",
                                                    "network",       "oversubscription", "gpus_per_rack"};

std::string rate_key(std::string_view key, const std::optional<Bandwidth>& rate) {
  return rate ? fmt::format(", {}: {}", key, to_string(*rate)) : "";
}

template <class T>
std::string key_if(std::string_view key, const T& value, bool written) {
  return written ? fmt::format(", {}: {}", key, value) : "";
}

std::string numbers_key(std::string_view key, const std::vector<int>& numbers) {
  return numbers.empty() ? "" : fmt::format(", {}: [{}]", key, fmt::join(numbers, ", "));
}

std::string edit_yaml(const FabricEdit& edit) {
  return fmt::format(
      "{{{}: {}{}{}{}{}{}{}{}}}", action_names.at(static_cast<std::size_t>(edit.action)),
      name_of(edit.subject), numbers_key("hosts", edit.hosts), numbers_key("gpus", edit.gpus),
      numbers_key("switches", edit.switches), key_if("wires", edit.wires.value_or(0), edit.wires.has_value()),
      key_if("factor", edit.factor.value_or(0), edit.factor.has_value()),
      rate_key("bandwidth", edit.bandwidth), key_if("size", edit.size.value_or(0), edit.size.has_value()));
}

std::string part_yaml(const FabricSpec& spec) {
  const std::string source = spec.import_file.empty()
                                 ? fmt::format("preset: {}", yaml_text(spec.preset))
                                 : fmt::format("import: {}", yaml_text(spec.import_file));
  const auto network =
      network_names.at(static_cast<std::size_t>(spec.network.value_or(NetworkKind::superpod)));
  return fmt::format(
      "{}, hosts: {}{}{}{}{}{}{}", source, spec.hosts, rate_key("nic_bandwidth", spec.nic_bandwidth),
      rate_key("nvlink_bandwidth", spec.nvlink_bandwidth), rate_key("pcie_bandwidth", spec.pcie_bandwidth),
      key_if("network", network, spec.network.has_value()),
      key_if("oversubscription", spec.oversubscription, spec.oversubscription != 1),
      key_if("gpus_per_rack", spec.gpus_per_rack.value_or(0), spec.gpus_per_rack.has_value()));
}

}  // namespace

FabricSpec read_fabric(const YamlValue& value) {
  FabricSpec spec;
  std::vector<std::string_view> keys{"routing", "pxn", "hash_seed", "edits"};
  if (const auto parts = value.find("parts")) {
    keys.insert(keys.end(), {"parts", "join"});
    value.allow_only(keys);
    for (const YamlValue& part : parts->items(max_parts)) {
      part.allow_only(std::vector<std::string_view>(part_keys.begin(), part_keys.end()));
      spec.parts.push_back(read_part(part));
    }
    spec.preset.clear();
    const YamlValue link = value.at("join");
    link.allow_only({"bandwidth"});
    read_rate(link, "bandwidth", spec.join_bandwidth);
    if (!spec.join_bandwidth)
      link.refuse("{bandwidth: the rate of the link between the parts, per direction}");
  } else {
    keys.insert(keys.end(), part_keys.begin(), part_keys.end());
    value.allow_only(keys);
    spec = read_part(value);
  }
  read_routing(value, spec.routing);
  if (const auto edits = value.find("edits")) {
    for (const YamlValue& edit : edits->items(max_edits)) spec.edits.push_back(read_edit(edit));
  }
  return spec;
}

std::string fabric_yaml(const FabricSpec& spec) {
  std::string text;
  if (spec.parts.empty()) {
    text = part_yaml(spec);
  } else {
    std::vector<std::string> parts;
    for (const FabricSpec& part : spec.parts) parts.push_back("{" + part_yaml(part) + "}");
    text = fmt::format("parts: [{}], join: {{bandwidth: {}}}", fmt::join(parts, ", "),
                       to_string(spec.join_bandwidth.value_or(Bandwidth{1})));
  }
  if (spec.routing.hashed) text += ", routing: hashed";
  if (spec.routing.pxn) text += ", pxn: true";
  if (spec.routing.seed != 0) text += fmt::format(", hash_seed: {}", spec.routing.seed);
  if (!spec.edits.empty()) {
    std::vector<std::string> edits;
    for (const FabricEdit& edit : spec.edits) edits.push_back(edit_yaml(edit));
    text += fmt::format(", edits: [{}]", fmt::join(edits, ", "));
  }
  return "{" + text + "}";
}

}  // namespace isthmus
