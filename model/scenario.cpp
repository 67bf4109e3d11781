#include "model/scenario.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/name_pattern.hpp"
#include "model/quantity.hpp"
#include "model/scenario_disturbance.hpp"
#include "model/scenario_fabric.hpp"
#include "model/scenario_reader.hpp"
#include "model/scenario_step.hpp"
#include "model/scenario_traffic.hpp"
#include "model/text.hpp"
#include "model/yaml.hpp"

namespace isthmus {
namespace {

void read_flag(const YamlValue& mapping, std::string_view key, bool& into) {
  if (const auto value = mapping.find(key)) into = value->flag();
}

}  // namespace

ModelSpec read_model(const YamlValue& value) {
  value.allow_only({"config", "dtype", "mtp", "vision", "layers", "kv_heads"});
  ModelSpec spec;
  spec.config = value.at("config").text("the path of a config.json, relative to the scenario");
  if (const auto dtype = value.find("dtype")) {
    const auto known = parse_wire_precision(dtype->text(wire_precision_form));
    if (!known) dtype->refuse(wire_precision_form);
    spec.precision = *known;
  }
  read_flag(value, "mtp", spec.mtp);
  read_flag(value, "vision", spec.vision);
  read_count(value, "layers", spec.layers, max_layers);
  if (const auto heads = value.find("kv_heads")) {
    const std::string name = heads->text("repeat or cut");
    if (name != "repeat" && name != "cut") heads->refuse("repeat or cut");
    spec.repeat_kv_heads = name == "repeat";
  }
  return spec;
}

namespace {

std::optional<SideRanks> read_side(const YamlValue& ranks, std::string_view side) {
  const auto value = ranks.find(side);
  if (!value) return std::nullopt;
  value->allow_only({"hosts", "fill"});
  SideRanks result;
  if (const auto fill = value->find("fill")) {
    const std::string name = fill->text("hosts or rails");
    if (name != "hosts" && name != "rails") fill->refuse("hosts or rails");
    result.by_rail = name == "rails";
  }
  for (const std::int64_t host : value->at("hosts").ranges(max_gpus))
    result.hosts.push_back(static_cast<int>(host));
  return result;
}

void read_sides(const YamlValue& value, Scenario& scenario) {
  value.allow_only({"train", "generate"});
  scenario.train_ranks = read_side(value, "train");
  scenario.generate_ranks = read_side(value, "generate");
  if (!scenario.train_ranks && !scenario.generate_ranks) value.refuse("train, generate, or both");
}

}  // namespace

BulkRule read_bulk(const YamlValue& value) {
  constexpr std::string_view form = "ffn, all, or {match: [regular expressions]}";
  BulkRule rule;
  if (value.is_mapping()) {
    value.allow_only({"match"});
    rule.kind = BulkRule::Kind::match;
    for (const YamlValue& item : value.at("match").items(max_name_patterns)) {
      rule.patterns.push_back(item.text(name_pattern_form));
      const auto fault = name_pattern_fault(rule.patterns.back());
      if (fault)
        item.refuse(fmt::format("{} in '{}'", *fault, printable(rule.patterns.back())), name_pattern_form);
    }
    return rule;
  }
  const std::string name = value.is_list() ? "" : value.text(form);
  if (name != "ffn" && name != "all") value.refuse(form);
  rule.kind = name == "ffn" ? BulkRule::Kind::ffn : BulkRule::Kind::all;
  return rule;
}

namespace {

M2nSpec read_m2n(const YamlValue& value) {
  value.allow_only({"plan", "split"});
  M2nSpec spec;
  if (const auto plan = value.find("plan")) {
    const std::string name = plan->text("ring or direct");
    if (name != "ring" && name != "direct") plan->refuse("ring or direct");
    spec.plan = name == "ring" ? M2nPlan::ring : M2nPlan::direct;
  }
  if (const auto split = value.find("split")) {
    const std::string name = split->text("on, off or auto");
    if (name != "on" && name != "off" && name != "auto") split->refuse("on, off or auto");
    spec.split = name == "on" ? M2nSplit::on : name == "off" ? M2nSplit::off : M2nSplit::automatic;
  }
  return spec;
}

}  // namespace

RefitSpec read_refit_rest(const YamlValue& value) {
  value.allow_only({"bulk", "streams", "buffers", "packet_bytes", "relay", "m2n", "quantize_at"});
  RefitSpec spec;
  read_count(value, "buffers", spec.buffers, max_in_flight);
  if (const auto size = value.find("packet_bytes")) {
    const std::optional<Bytes> bytes = parse_bytes(size->text(size_form));
    if (!bytes) size->refuse(size_form);
    spec.packet_bytes = *bytes;
  }
  if (const auto relay = value.find("relay")) {
    const std::string name = relay->text("members or any");
    if (name != "members" && name != "any") relay->refuse("members or any");
    spec.relay = name == "any" ? Relay::any : Relay::members;
  }
  if (const auto m2n = value.find("m2n")) spec.m2n = read_m2n(*m2n);
  if (const auto at = value.find("quantize_at")) {
    const std::string name = at->text("target or source");
    if (name != "target" && name != "source") at->refuse("target or source");
    spec.quantise_at = name == "source" ? QuantiseAt::source : QuantiseAt::target;
  }
  return spec;
}

namespace {

RefitSpec read_refit(const YamlValue& value) {
  RefitSpec spec = read_refit_rest(value);
  if (const auto bulk = value.find("bulk")) spec.bulk = read_bulk(*bulk);
  read_count(value, "streams", spec.streams, max_in_flight);
  return spec;
}

void read_whole_refit(const YamlValue& root, Scenario& scenario) {
  scenario.model = read_model(root.at("model"));
  scenario.train = read_train(root.at("train"));
  scenario.generate = read_generate(root.at("generate"));
  if (const auto ranks = root.find("ranks")) read_sides(*ranks, scenario);
}

/// The forms exclude each other; `traffic` decides first.
bool read_traffic_form(const YamlValue& root, Scenario& scenario) {
  const auto traffic = root.find("traffic");
  if (!traffic) return false;
  for (const std::string_view key :
       {"model", "train", "generate", "ranks", "tensor", "source", "target", "tensors", "refit", "published",
        "background", "faults", "failed_steps", "step"}) {
    if (const auto value = root.find(key)) {
      value->refuse("this key beside traffic", "it without traffic (published: below traffic)");
    }
  }
  scenario.traffic = read_traffic(*traffic);
  return true;
}

/// Of the other two `tensor` or `tensors` decides.
void read_content(const YamlValue& root, Scenario& scenario) {
  if (read_traffic_form(root, scenario)) return;
  const bool bare = root.find("tensor") || root.find("tensors");
  if (!bare && !root.find("model")) {
    root.refuse("neither model nor tensor nor traffic",
                "model, train, generate; or tensor, source, target; or tensors; or traffic");
  }
  const std::vector<std::string_view> foreign =
      bare ? std::vector<std::string_view>{"model", "train", "generate", "ranks", "step"}
           : std::vector<std::string_view>{"source", "target"};
  for (const std::string_view key : foreign) {
    const auto value = root.find(key);
    if (value && bare)
      value->refuse("this key beside bare tensors", "it with model, train and generate only");
    if (value) value->refuse("this key beside a model", "it with tensor only");
  }
  if (bare) {
    scenario.tensors = read_tensors(root);
  } else {
    read_whole_refit(root, scenario);
  }
}

void read_root(const YamlValue& root, Scenario& scenario) {
  root.allow_only({"name", "fabric", "model", "train", "generate", "ranks", "tensor", "source", "target",
                   "tensors", "traffic", "refit", "calibration", "published", "background", "faults",
                   "failed_steps", "step"});
  const std::string stem = scenario.file.stem().string();
  scenario.name = stem.empty() ? "scenario" : printable(stem);
  if (const auto name = root.find("name")) scenario.name = name->text("a name of one line");
  read_content(root, scenario);
  scenario.fabric = read_fabric(root.at("fabric"));
  if (const auto refit = root.find("refit")) scenario.refit = read_refit(*refit);
  if (const auto calibration = root.find("calibration")) {
    constexpr std::string_view form = "a name such as h100-ib400, or a path that ends in .yaml";
    scenario.calibration = calibration->text(form);
    const bool is_path = std::string_view(scenario.calibration).ends_with(".yaml");
    if (!is_path && !is_name(scenario.calibration)) calibration->refuse(form);
  }
  scenario.disturbances = read_disturbances(root);
  if (const auto step = root.find("step")) read_step(*step);  // judged here, kept by find_step()
  if (const auto published = root.find("published")) scenario.published = read_published_rows(*published);
}

}  // namespace

bool is_name(std::string_view text) {
  const auto is_letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return is_letter_or_digit(text.front()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
         });
}

Location Scenario::at(std::string_view key) const {
  for (std::string_view parent = key; !parent.empty();) {
    if (const auto found = locations.find(std::string(parent)); found != locations.end()) {
      return parent == key ? found->second
                           : Location{found->second.file, found->second.line, std::string(key)};
    }
    const std::size_t dot = parent.rfind('.');
    parent = dot == std::string_view::npos ? std::string_view{} : parent.substr(0, dot);
  }
  return {printable(file.string(), 4096), 0, std::string(key)};
}

bool same_content(const Scenario& a, const Scenario& b) {
  return a.name == b.name && a.fabric == b.fabric && a.model == b.model && a.train == b.train &&
         a.generate == b.generate && a.train_ranks == b.train_ranks && a.generate_ranks == b.generate_ranks &&
         a.tensors == b.tensors && a.traffic == b.traffic && a.refit == b.refit &&
         a.calibration == b.calibration && a.published == b.published && a.disturbances == b.disturbances;
}

Scenario parse_scenario(const std::string& text, const std::filesystem::path& file,
                        const std::vector<Override>& overrides) {
  YamlDocument document(text, file.string());
  for (const auto& [key, value] : overrides) document.set(key, value);
  Scenario scenario;
  scenario.file = file;
  read_root(document.root(), scenario);
  scenario.locations = document.locations();
  return scenario;
}

Scenario read_scenario(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  return parse_scenario(read_text_file(file), file, overrides);
}

}  // namespace isthmus
