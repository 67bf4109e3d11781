#include "model/scenario_model.hpp"

#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "model/checkpoint.hpp"

namespace isthmus {
namespace {

/// Fewer decoder layers than the configuration has.
void keep_layers(Inventory& inventory, int layers) {
  for (TensorPattern& pattern : inventory.patterns) {
    if (pattern.home != Home::layer) continue;
    std::erase_if(pattern.layers, [layers](int layer) { return layer >= layers; });
  }
  std::erase_if(inventory.patterns, [](const TensorPattern& pattern) {
    return pattern.home == Home::layer && pattern.layers.empty();
  });
  inventory.layers = layers;
}

/// What the precisions ask of the model: BF16 where the receiver quantises, whole groups in each row.
std::vector<InputFault> precision_faults(const Scenario& scenario, const Inventory& inventory) {
  const ModelSpec& model = *scenario.model;
  const bool receiver = scenario.generate->quantize_mxfp8;
  std::vector<InputFault> faults;
  if (scenario.refit.quantise_at == QuantiseAt::source && !receiver)
    faults.push_back(nothing_to_quantise(scenario));
  if (receiver && model.precision != WirePrecision::bf16) {
    faults.push_back({scenario.at("generate.quantize"),
                      fmt::format("mxfp8 beside model.dtype {}", to_string(model.precision)),
                      "it with model.dtype bf16 only", "leave it out, or model.dtype bf16"});
    return faults;
  }
  if (!receiver && model.precision != WirePrecision::mxfp8) return faults;
  const TensorPattern* const broken = first_broken_group(inventory, {model.mtp, model.vision});
  if (broken == nullptr) return faults;
  faults.push_back(
      {scenario.at(receiver ? "generate.quantize" : "model.dtype"), "mxfp8",
       fmt::format("it with rows of whole groups of {} (those of {} are not)", mxfp8_group, broken->name),
       receiver ? "leave it out" : "bf16 or fp8"});
  return faults;
}

}  // namespace

WirePrecision wire_precision(const Scenario& scenario) {
  return sources_quantise(scenario) ? WirePrecision::mxfp8 : scenario.model->precision;
}

bool sources_quantise(const Scenario& scenario) {
  return scenario.refit.quantise_at == QuantiseAt::source && scenario.generate &&
         scenario.generate->quantize_mxfp8;
}

InputFault nothing_to_quantise(const Scenario& scenario) {
  return {scenario.at("refit.quantize_at"), "source without generate.quantize",
          "source with generate.quantize: mxfp8 only", "target"};
}

Inventory read_full_inventory(const Scenario& scenario) {
  const ModelSpec& model = *scenario.model;
  const std::filesystem::path config = scenario.file.parent_path() / model.config;
  std::error_code code;  // a name too long for any file is not found either
  if (!std::filesystem::exists(config, code)) {
    throw InputError(scenario.at("model.config"), fmt::format("'{}'", model.config),
                     "an existing config.json, relative to the scenario");
  }
  return read_inventory(config);
}

std::vector<InputFault> model_faults(const Scenario& scenario, const Inventory& full) {
  const ModelSpec& model = *scenario.model;
  std::vector<InputFault> faults;
  for (InputFault& fault : precision_faults(scenario, full)) faults.push_back(std::move(fault));
  if (model.layers && *model.layers > full.layers) {
    faults.push_back({scenario.at("model.layers"), fmt::format("{}", *model.layers),
                      fmt::format("1 to {} (the configuration's layers)", full.layers),
                      fmt::format("{}", full.layers)});
  }
  return faults;
}

Inventory cut_inventory(const Scenario& scenario, Inventory full) {
  raise_first(model_faults(scenario, full));
  if (scenario.model->layers) keep_layers(full, *scenario.model->layers);
  return full;
}

namespace {

/// Adds a tensor of the experts that spare slots repeat after each tensor of experts.
std::vector<RefitTensor> with_copies(std::vector<RefitTensor> tensors, int slots) {
  if (slots == 0) return tensors;
  std::vector<RefitTensor> result;
  for (RefitTensor& tensor : tensors) {
    RefitTensor& plain = result.emplace_back(std::move(tensor));
    if (!plain.expert) continue;
    RefitTensor copy = plain;
    copy.name += ".copies";
    copy.copy_of = plain.shape.front();
    copy.copy = true;
    copy.shape.front() = slots;
    copy.parts = plain.parts == 1 ? 1 : slots;
    result.push_back(std::move(copy));
  }
  return result;
}

/// A model without a head of its own computes with its embedding: the last stage of an engine holds it too.
void add_tied_head(std::vector<RefitTensor>& tensors) {
  const auto vocabulary_on = [&tensors](Home home) {
    return std::find_if(tensors.begin(), tensors.end(), [home](const RefitTensor& tensor) {
      return tensor.home == home && tensor.tensor_parallel == TensorParallel::vocabulary;
    });
  };
  const auto embedding = vocabulary_on(Home::first_stage);
  if (embedding == tensors.end() || vocabulary_on(Home::last_stage) != tensors.end()) return;
  RefitTensor head = *embedding;
  head.name += ".tied";
  head.copy = head.tied_head = true;
  tensors.push_back(std::move(head));
}

}  // namespace

std::vector<RefitTensor> list_tensors(const Scenario& scenario, const Inventory& inventory) {
  const BulkRule& rule = scenario.refit.bulk;
  Inventory travelling = in_precision(inventory, wire_precision(scenario));
  if (sources_quantise(scenario))
    mark_source_quantises(travelling);
  else if (scenario.generate->quantize_mxfp8)
    mark_receiver_quantises(travelling);
  std::vector<RefitTensor> tensors = refit_tensors(
      travelling, {scenario.model->mtp, scenario.model->vision}, [&rule](const TensorPattern& pattern) {
        return rule.kind == BulkRule::Kind::all || pattern.role == Role::bulk;
      });
  std::vector<std::regex> expressions;
  if (rule.kind == BulkRule::Kind::match) {
    for (const std::string& pattern : rule.patterns) expressions.emplace_back(pattern);
  }
  for (RefitTensor& tensor : tensors) {
    if (rule.kind != BulkRule::Kind::match) continue;
    const bool bulk = std::any_of(
        expressions.begin(), expressions.end(),
        [&tensor](const std::regex& expression) { return std::regex_search(tensor.name, expression); });
    tensor.role = bulk ? Role::bulk : Role::misc;
  }
  tensors = with_copies(std::move(tensors), scenario.generate->redundant_experts);
  if (scenario.generate->pp > 1) add_tied_head(tensors);
  return tensors;
}

}  // namespace isthmus
