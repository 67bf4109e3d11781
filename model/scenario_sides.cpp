// Reads the two sides of a whole refit: train and generate.

#include <numeric>

#include <fmt/format.h>

#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

/// "[0-2, 3-6, [7, 9], []]": the last stage has no layer.
StageLayers read_stages(const YamlValue& value) {
  StageLayers stages;
  std::int64_t named = 0;
  for (const YamlValue& item : value.items(max_stages)) {
    std::vector<int>& layers = stages.emplace_back();
    if (item.is_list() && item.node().children.empty()) continue;
    for (const std::int64_t layer : item.ranges(max_layers)) layers.push_back(static_cast<int>(layer));
    named += static_cast<std::int64_t>(layers.size());
    if (named > max_layers) value.refuse("a layer on several stages", "each layer once");
  }
  return stages;
}

/// GPUs are never derived: the same printed sizes mean different numbers to different people.
int read_train_gpus(const YamlValue& value, const TrainSpec& spec) {
  if (const auto gpus = value.find("gpus")) return read_count(*gpus);
  const std::int64_t etp = spec.etp.value_or(spec.tp);
  const std::int64_t dense = std::int64_t{spec.tp} * spec.cp, expert = spec.ep == 1 ? 1 : etp * spec.ep;
  const bool small = dense <= max_gpus && expert <= max_gpus;  // else the products may not fit
  const std::int64_t folded = small ? std::lcm(dense, expert) * spec.pp : 0;
  const std::int64_t product = small ? dense * spec.pp * spec.ep : 0;
  if (folded == product) return read_count(value.at("gpus"));
  value.refuse("no gpus", fmt::format("gpus: a multiple of {} if experts fold into a stage's ranks "
                                      "(Megatron-LM), of {} if the printed sizes multiply",
                                      folded, product));
}

}  // namespace

int read_count(const YamlValue& value, std::int64_t most) { return static_cast<int>(value.integer(1, most)); }

void read_count(const YamlValue& mapping, std::string_view key, int& into, std::int64_t most) {
  if (const auto value = mapping.find(key)) into = read_count(*value, most);
}

void read_count(const YamlValue& mapping, std::string_view key, std::optional<int>& into, std::int64_t most) {
  if (const auto value = mapping.find(key)) into = read_count(*value, most);
}

TrainSpec read_train(const YamlValue& value) {
  value.allow_only({"gpus", "tp", "cp", "ep", "etp", "pp", "layers_first", "layers_last", "layer_split",
                    "vpp", "fsdp", "order", "stages", "vocabulary_multiple"});
  TrainSpec spec;
  read_count(value, "tp", spec.tp);
  read_count(value, "cp", spec.cp);
  read_count(value, "ep", spec.ep);
  read_count(value, "pp", spec.pp);
  read_count(value, "etp", spec.etp);
  spec.gpus = read_train_gpus(value, spec);
  read_count(value, "layers_first", spec.layers_first, max_layers);
  read_count(value, "layers_last", spec.layers_last, max_layers);
  if (const auto split = value.find("layer_split")) {
    const std::string name = split->text("even or proportional");
    if (name != "even" && name != "proportional") split->refuse("even or proportional");
    spec.layer_split = name == "even" ? LayerSplit::even : LayerSplit::proportional;
  }
  read_count(value, "vpp", spec.vpp, max_layers);
  read_count(value, "fsdp", spec.fsdp);
  if (const auto order = value.find("order")) spec.order = order->text("axes, such as tp-cp-ep-dp-pp");
  if (const auto stages = value.find("stages")) spec.stages = read_stages(*stages);
  read_count(value, "vocabulary_multiple", spec.vocabulary_multiple);
  return spec;
}

GenerateSpec read_generate(const YamlValue& value) {
  value.allow_only({"gpus", "tp", "ep", "dp", "pp", "etp", "redundant_experts", "stages",
                    "vocabulary_multiple", "quantize"});
  GenerateSpec spec;
  spec.gpus = read_count(value.at("gpus"));
  read_count(value, "tp", spec.tp);
  read_count(value, "ep", spec.ep);
  read_count(value, "dp", spec.dp);
  read_count(value, "pp", spec.pp);
  read_count(value, "etp", spec.etp);
  if (const auto quantize = value.find("quantize")) {
    if (quantize->text("mxfp8") != "mxfp8") quantize->refuse("mxfp8");
    spec.quantize_mxfp8 = true;
  }
  if (const auto copies = value.find("redundant_experts")) {
    spec.redundant_experts = static_cast<int>(copies->integer(0, max_gpus));
  }
  if (const auto stages = value.find("stages")) spec.stages = read_stages(*stages);
  read_count(value, "vocabulary_multiple", spec.vocabulary_multiple);
  return spec;
}

}  // namespace isthmus
