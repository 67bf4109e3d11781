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

}  // namespace

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
  if (model.dtype != Dtype::bf16) {
    faults.push_back({scenario.at("model.dtype"), std::string(to_string(model.dtype)), "bf16", "bf16"});
  }
  if (model.layers && (*model.layers < 1 || *model.layers > full.layers)) {
    faults.push_back({scenario.at("model.layers"), fmt::format("{}", *model.layers),
                      fmt::format("1 to {} (the configuration's layers)", full.layers),
                      fmt::format("{}", *model.layers < 1 ? 1 : full.layers)});
  }
  return faults;
}

Inventory cut_inventory(const Scenario& scenario, Inventory full) {
  raise_first(model_faults(scenario, full));
  if (scenario.model->layers) keep_layers(full, *scenario.model->layers);
  return full;
}

std::vector<RefitTensor> list_tensors(const Scenario& scenario, const Inventory& inventory) {
  const BulkRule& rule = scenario.refit.bulk;
  std::vector<RefitTensor> tensors = refit_tensors(
      inventory, {scenario.model->mtp, scenario.model->vision}, [&rule](const TensorPattern& pattern) {
        return rule.kind == BulkRule::Kind::all || pattern.role == Role::bulk;
      });
  std::vector<std::regex> expressions;
  if (rule.kind == BulkRule::Kind::match) {
    for (const std::string& pattern : rule.patterns) expressions.emplace_back(pattern);
  }
  for (RefitTensor& tensor : tensors) {
    tensor.dtype = scenario.model->dtype;
    if (rule.kind != BulkRule::Kind::match) continue;
    const bool bulk = std::any_of(
        expressions.begin(), expressions.end(),
        [&tensor](const std::regex& expression) { return std::regex_search(tensor.name, expression); });
    tensor.role = bulk ? Role::bulk : Role::misc;
  }
  return tensors;
}

}  // namespace isthmus
