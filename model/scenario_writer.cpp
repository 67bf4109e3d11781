// The scenario as YAML text that reads back to the same content.

#include <algorithm>

#include <fmt/format.h>

#include "model/quantity.hpp"
#include "model/scenario.hpp"
#include "model/scenario_disturbance.hpp"
#include "model/scenario_fabric.hpp"
#include "model/scenario_reader.hpp"
#include "model/scenario_traffic.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

/// "0-31", or "[0-3, 8]": ascending runs as ranges, in order.
template <class Numbers, class Value>
std::string ranges(const Numbers& numbers, Value value) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && value(numbers[last + 1]) == value(numbers[last]) + 1) ++last;
    runs.push_back(last == first ? fmt::format("{}", value(numbers[first]))
                                 : fmt::format("{}-{}", value(numbers[first]), value(numbers[last])));
    first = last + 1;
  }
  return runs.size() == 1 ? runs.front() : fmt::format("[{}]", fmt::join(runs, ", "));
}

template <class T>
std::string optional_key(std::string_view key, const std::optional<T>& value) {
  return value ? fmt::format(", {}: {}", key, *value) : "";
}

std::string model(const ModelSpec& spec) {
  return fmt::format("model: {{config: {}, dtype: {}, mtp: {}, vision: {}{}{}}}\n", yaml_text(spec.config),
                     to_string(spec.precision), spec.mtp, spec.vision, optional_key("layers", spec.layers),
                     spec.repeat_kv_heads ? "" : ", kv_heads: cut");
}

std::string key_unless(std::string_view key, int value, int usual) {
  return value == usual ? "" : fmt::format(", {}: {}", key, value);
}

std::string stages(const StageLayers& of_stage) {
  if (of_stage.empty()) return "";
  std::vector<std::string> lists;
  for (const std::vector<int>& layers : of_stage) {
    lists.push_back(layers.empty() ? "[]" : ranges(layers, [](int layer) { return layer; }));
  }
  return fmt::format(", stages: [{}]", fmt::join(lists, ", "));
}

std::string train(const TrainSpec& spec) {
  const TrainSpec usual;
  return fmt::format(
      "train: {{gpus: {}, tp: {}, cp: {}, ep: {}, pp: {}{}{}{}{}{}{}{}{}{}}}\n", spec.gpus, spec.tp, spec.cp,
      spec.ep, spec.pp, optional_key("etp", spec.etp), optional_key("layers_first", spec.layers_first),
      optional_key("layers_last", spec.layers_last),
      spec.layer_split == LayerSplit::even ? "" : ", layer_split: proportional",
      key_unless("vpp", spec.vpp, usual.vpp), key_unless("fsdp", spec.fsdp, usual.fsdp),
      spec.order == usual.order ? "" : fmt::format(", order: {}", yaml_text(spec.order)), stages(spec.stages),
      key_unless("vocabulary_multiple", spec.vocabulary_multiple, usual.vocabulary_multiple));
}

std::string generate(const GenerateSpec& spec) {
  const GenerateSpec usual;
  return fmt::format("generate: {{gpus: {}, tp: {}, ep: {}{}{}{}{}{}{}{}}}\n", spec.gpus, spec.tp, spec.ep,
                     optional_key("dp", spec.dp), spec.quantize_mxfp8 ? ", quantize: mxfp8" : "",
                     key_unless("pp", spec.pp, usual.pp), optional_key("etp", spec.etp),
                     key_unless("redundant_experts", spec.redundant_experts, usual.redundant_experts),
                     stages(spec.stages),
                     key_unless("vocabulary_multiple", spec.vocabulary_multiple, usual.vocabulary_multiple));
}

std::string side(std::string_view name, const std::optional<SideRanks>& ranks) {
  if (!ranks) return "";
  return fmt::format("  {}: {{hosts: {}{}}}\n", name, ranges(ranks->hosts, [](int host) { return host; }),
                     ranks->by_rail ? ", fill: rails" : "");
}

std::string frame(const Layout& layout) {
  if (!layout.frame) return "";
  return fmt::format(", frame: [{}], origin: [{}]", fmt::join(layout.frame->extent, ", "),
                     fmt::join(layout.frame->origin, ", "));
}

std::string view(const FusedView& view) {
  return fmt::format(", view: {{base: {}, dimension: {}, offset: {}, block: {}, stride: {}, extent: {}{}}}",
                     yaml_text(view.base), view.dimension, view.offset, view.block, view.stride, view.extent,
                     view.storage.empty() ? "" : fmt::format(", storage: {}", yaml_text(view.storage)));
}

std::string numbers(std::string_view key, const std::vector<std::int64_t>& values) {
  return values.empty() ? "" : fmt::format(", {}: [{}]", key, fmt::join(values, ", "));
}

/// `more`: further keys, each after ", ".
std::string layout(const Layout& layout, const std::string& more) {
  std::vector<std::string> placements;
  for (const Placement placement : layout.placements) placements.push_back(to_string(placement));
  const std::vector<Rank>& ranks = layout.mesh.ranks;
  const std::string rank_texts = ranges(ranks, [](Rank rank) { return rank.value; });
  const bool contiguous = rank_texts.front() != '[';
  return fmt::format("{{mesh: [{}], {}: {}, placements: [{}], chunk_rule: {}{}{}}}",
                     fmt::join(layout.mesh.shape, ", "), contiguous ? "first_rank" : "ranks",
                     contiguous ? fmt::format("{}", ranks.front().value) : rank_texts,
                     fmt::join(placements, ", "), to_string(layout.chunk_rule), frame(layout), more);
}

std::string source(const TensorSpec& spec) {
  const TensorClaims& claims = spec.claims;
  std::string more = numbers("local_shape", claims.source_shape);
  if (spec.source_view) more += view(*spec.source_view);
  if (claims.transformed) more += ", view: transformed";
  std::string first = layout(spec.source, more);
  if (claims.other_sources.empty()) return first;
  std::string list = "[" + first;
  for (const Layout& other : claims.other_sources) list += ", " + layout(other, "");
  return list + "]";
}

std::string target(const TensorSpec& spec) {
  std::string more = numbers("local_shape", spec.claims.target_shape) + numbers("slots", spec.claims.slots);
  if (spec.target_view) more += view(*spec.target_view);
  return layout(spec.target, more);
}

std::string tensor(const TensorSpec& spec, std::string_view first_indent, std::string_view indent) {
  std::string claims = spec.claims.replicas ? ", replicas: true" : "";
  if (spec.claims.install) claims += ", install: true";
  if (!spec.claims.tied_to.empty()) claims += fmt::format(", tied_to: {}", yaml_text(spec.claims.tied_to));
  std::string text =
      fmt::format("{}tensor: {{name: {}, shape: [{}], dtype: {}{}}}\n", first_indent, yaml_text(spec.name),
                  fmt::join(spec.source.shape, ", "), to_string(spec.source.dtype), claims);
  if (!spec.source.mesh.ranks.empty()) text += fmt::format("{}source: {}\n", indent, source(spec));
  if (!spec.target.mesh.ranks.empty()) text += fmt::format("{}target: {}\n", indent, target(spec));
  return text;
}

std::string bulk(const BulkRule& rule) {
  if (rule.kind == BulkRule::Kind::ffn) return "ffn";
  if (rule.kind == BulkRule::Kind::all) return "all";
  std::vector<std::string> patterns;
  for (const std::string& pattern : rule.patterns) patterns.push_back(yaml_text(pattern));
  return fmt::format("{{match: [{}]}}", fmt::join(patterns, ", "));
}

std::string m2n(const M2nSpec& spec) {
  const std::string_view split = spec.split == M2nSplit::on    ? "on"
                                 : spec.split == M2nSplit::off ? "off"
                                                               : "auto";
  return fmt::format("{{plan: {}, split: {}}}", spec.plan == M2nPlan::ring ? "ring" : "direct", split);
}

std::string refit(const RefitSpec& spec) {
  return fmt::format(
      "refit: {{bulk: {}, streams: {}, buffers: {}, packet_bytes: {}, relay: {}, m2n: {}{}}}\n",
      bulk(spec.bulk), spec.streams, spec.buffers, to_string(spec.packet_bytes),
      spec.relay == Relay::any ? "any" : "members", m2n(spec.m2n),
      spec.quantise_at == QuantiseAt::source ? ", quantize_at: source" : "");
}

std::string content(const Scenario& scenario) {
  std::string text;
  if (scenario.model) text += model(*scenario.model);
  if (scenario.train) text += train(*scenario.train);
  if (scenario.generate) text += generate(*scenario.generate);
  if (scenario.train_ranks || scenario.generate_ranks) {
    text += "ranks:\n" + side("train", scenario.train_ranks) + side("generate", scenario.generate_ranks);
  }
  if (scenario.tensors.size() == 1) return text + tensor(scenario.tensors.front(), "", "");
  if (!scenario.tensors.empty()) text += "tensors:\n";
  for (const TensorSpec& spec : scenario.tensors) text += tensor(spec, "  - ", "    ");
  return text;
}

}  // namespace

std::string to_yaml(const Scenario& scenario) {
  std::string text = fmt::format("name: {}\n", yaml_text(scenario.name));
  text += content(scenario) + "fabric: " + fabric_yaml(scenario.fabric) + "\n";
  text += scenario.traffic ? traffic_yaml(*scenario.traffic) : refit(scenario.refit);
  text += fmt::format("calibration: {}\n", yaml_text(scenario.calibration));
  text += disturbances_yaml(scenario.disturbances);
  if (!scenario.published.empty()) text += "published:\n";
  for (const Published& row : scenario.published) text += published_yaml(row);
  return text;
}

}  // namespace isthmus
