#include "model/sweep_space.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "model/quantity.hpp"
#include "model/scenario_fabric.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"
#include "model/yaml.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_choices = 256;
constexpr std::array<std::pair<PlacementKind, std::string_view>, 4> placement_names{
    {{PlacementKind::contiguous, "contiguous"},
     {PlacementKind::interleaved, "interleaved"},
     {PlacementKind::co_racked, "co-racked"},
     {PlacementKind::rail_aligned, "rail-aligned"}}};

/// A value where one is, else the items of a list.
std::vector<YamlValue> values_of(const YamlValue& value) {
  return value.is_list() ? value.items(max_choices) : std::vector<YamlValue>{value};
}

template <class T>
void add_once(const YamlValue& value, T choice, std::vector<T>& choices) {
  if (std::find(choices.begin(), choices.end(), choice) != choices.end()) value.refuse("each value once");
  choices.push_back(std::move(choice));
}

/// {from, to}: doubling, or with `step` adding.
std::vector<int> read_range(const YamlValue& value) {
  value.allow_only({"from", "to", "step"});
  const int from = read_count(value.at("from")), to = read_count(value.at("to"));
  std::optional<int> step;
  read_count(value, "step", step);
  if (to < from) value.at("to").refuse(fmt::format("from = {} or more", from));
  std::vector<int> numbers;
  for (std::int64_t n = from; n <= to; n = step ? n + *step : 2 * n) {
    if (numbers.size() == max_choices) value.refuse(fmt::format("at most {} values", max_choices));
    numbers.push_back(static_cast<int>(n));
  }
  return numbers;
}

std::vector<int> read_numbers(const YamlValue& mapping, std::string_view key, std::vector<int> usual,
                              std::int64_t most = max_gpus) {
  const auto value = mapping.find(key);
  if (!value) return usual;
  if (value->is_mapping()) return read_range(*value);
  std::vector<int> numbers;
  for (const YamlValue& item : values_of(*value)) add_once(item, read_count(item, most), numbers);
  return numbers;
}

std::vector<int> require_numbers(const YamlValue& mapping, std::string_view key) {
  mapping.at(key);  // raises where it is missing
  return read_numbers(mapping, key, {});
}

TrainChoices read_train_choices(const YamlValue& value) {
  value.allow_only({"gpus", "tp", "cp", "ep", "etp", "pp", "fsdp", "dp", "order", "vocabulary_multiple"});
  TrainChoices choices;
  choices.gpus = require_numbers(value, "gpus");
  choices.tp = read_numbers(value, "tp", {1});
  choices.cp = read_numbers(value, "cp", {1});
  choices.ep = read_numbers(value, "ep", {1});
  choices.pp = read_numbers(value, "pp", {1});
  choices.fsdp = read_numbers(value, "fsdp", {1});
  choices.etp = read_numbers(value, "etp", {});
  choices.dp = read_numbers(value, "dp", {});
  choices.order = TrainSpec{}.order;
  if (const auto order = value.find("order")) choices.order = order->text("axes, such as tp-cp-ep-dp-pp");
  read_count(value, "vocabulary_multiple", choices.vocabulary_multiple);
  return choices;
}

GenerateChoices read_generate_choices(const YamlValue& value) {
  value.allow_only({"gpus", "tp", "ep", "pp", "dp", "quantize", "vocabulary_multiple"});
  GenerateChoices choices;
  choices.gpus = require_numbers(value, "gpus");
  choices.tp = read_numbers(value, "tp", {1});
  choices.ep = read_numbers(value, "ep", {1});
  choices.pp = read_numbers(value, "pp", {1});
  choices.dp = read_numbers(value, "dp", {});
  if (const auto quantize = value.find("quantize")) {
    if (quantize->text("mxfp8") != "mxfp8") quantize->refuse("mxfp8");
    choices.quantize_mxfp8 = true;
  }
  read_count(value, "vocabulary_multiple", choices.vocabulary_multiple);
  return choices;
}

std::vector<PlacementKind> read_placements(const YamlValue& root) {
  const auto value = root.find("placements");
  if (!value) return {PlacementKind::contiguous};
  constexpr std::string_view form = "contiguous, interleaved, co-racked, rail-aligned, or a list of these";
  std::vector<PlacementKind> kinds;
  for (const YamlValue& item : values_of(*value)) {
    const std::string name = item.text(form);
    const auto* const known = std::find_if(placement_names.begin(), placement_names.end(),
                                           [&](const auto& each) { return each.second == name; });
    if (known == placement_names.end()) item.refuse(form);
    add_once(item, known->first, kinds);
  }
  return kinds;
}

std::vector<std::string> read_names(const YamlValue& root, std::string_view key, std::string_view usual) {
  const auto value = root.find(key);
  if (!value) return {std::string(usual)};
  std::vector<std::string> names;
  for (const YamlValue& item : values_of(*value)) add_once(item, item.text("a name"), names);
  return names;
}

/// As in a scenario, save that `bulk` and `streams` may be lists.
void read_refit_choices(const YamlValue& root, SweepSpace& space) {
  const auto value = root.find("refit");
  space.bulk = {space.refit.bulk};
  space.streams = {space.refit.streams};
  if (!value) return;
  value->allow_only({"bulk", "streams", "buffers", "packet_bytes", "relay", "m2n", "quantize_at"});
  if (const auto bulk = value->find("bulk")) {
    space.bulk.clear();
    for (const YamlValue& item : values_of(*bulk)) add_once(item, read_bulk(item), space.bulk);
  }
  space.streams = read_numbers(*value, "streams", space.streams, max_in_flight);
  space.refit = read_refit_rest(*value);
}

Bytes read_size(const YamlValue& mapping, std::string_view key, Bytes usual) {
  const auto value = mapping.find(key);
  if (!value) return usual;
  const std::optional<Bytes> bytes = parse_bytes(value->text(size_form));
  if (!bytes) value->refuse(size_form);
  return *bytes;
}

MemoryRule read_memory(const YamlValue& root) {
  MemoryRule rule;
  const auto value = root.find("memory");
  if (!value) return rule;
  value->allow_only({"gpu", "kv_cache", "activations"});
  rule.gpu = read_size(*value, "gpu", rule.gpu);
  rule.kv_cache = read_size(*value, "kv_cache", rule.kv_cache);
  rule.activations = read_size(*value, "activations", rule.activations);
  return rule;
}

void judge_size(const SweepSpace& space) {
  if (space.layouts() <= max_sweep_layouts) return;
  throw InputError(space.at("train"), "more combinations than can be enumerated",
                   fmt::format("at most {} layouts, the product of all lists", max_sweep_layouts));
}

}  // namespace

std::string_view to_string(PlacementKind kind) {
  return std::find_if(placement_names.begin(), placement_names.end(),
                      [kind](const auto& each) { return each.first == kind; })
      ->second;
}

Location SweepSpace::at(std::string_view key) const {
  Scenario places;
  places.file = file;
  places.locations = locations;
  return places.at(key);
}

std::int64_t SweepSpace::layouts() const {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 1024;
  std::int64_t product = 1;
  for (const std::size_t n :
       {models.size(), train.gpus.size(), train.tp.size(), train.cp.size(), train.ep.size(), train.pp.size(),
        train.fsdp.size(), std::max<std::size_t>(1, train.etp.size()), generate.gpus.size(),
        generate.tp.size(), generate.ep.size(), generate.pp.size(), placements.size()}) {
    product = product > most ? product : product * static_cast<std::int64_t>(n);
  }
  return product;
}

SweepSpace parse_sweep_space(const std::string& text, const std::filesystem::path& file,
                             const std::vector<Override>& overrides) {
  YamlDocument document(text, file.string());
  for (const auto& [key, value] : overrides) document.set(key, value);
  const YamlValue root = document.root();
  root.allow_only({"name", "model", "fabric", "budget", "train", "generate", "placements", "policies",
                   "refit", "calibrations", "memory"});
  SweepSpace space;
  space.file = file;
  space.locations = document.locations();
  space.name = root.at("name").text("a name");
  for (const YamlValue& item : values_of(root.at("model"))) add_once(item, read_model(item), space.models);
  space.fabric = read_fabric(root.at("fabric"));
  read_count(root, "budget", space.budget);
  space.train = read_train_choices(root.at("train"));
  space.generate = read_generate_choices(root.at("generate"));
  space.placements = read_placements(root);
  space.policies = read_names(root, "policies", "all");
  read_refit_choices(root, space);
  space.calibrations = read_names(root, "calibrations", "wire-only");
  space.memory = read_memory(root);
  judge_size(space);
  return space;
}

SweepSpace read_sweep_space(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  return parse_sweep_space(read_text_file(file), file, overrides);
}

}  // namespace isthmus
