#include "model/input.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>

#include "model/json_file.hpp"
#include "model/json_tree.hpp"
#include "model/m2n_config.hpp"
#include "model/quantity.hpp"
#include "model/recipe.hpp"
#include "model/refit_info_input.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

InputKind kind_of(const YamlDocument& document) {
  const YamlValue root = document.root();
  if (root.find("policy") || root.find("defaults")) return InputKind::nemo_rl_recipe;
  const auto train = root.find("train");
  return train && train->find("num_gpus") ? InputKind::m2n_config : InputKind::scenario;
}

/// A path as the value of --set: in quotes, so that YAML takes it for this very text.
std::string quoted(const std::filesystem::path& path) {
  std::string text = "\"";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

/// Of a file that begins as JSON more than a YAML text may have: refit descriptions with local maps are long.
std::string read_any_text(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) {
    std::ifstream stream(file);
    char first = 0;
    if (stream >> first && first == '{') return read_text(file, max_json_bytes);
  }
  return read_text_file(file);
}

void refuse_local_maps(const std::filesystem::path& file) {
  throw InputError({printable(file.string(), 4096), 0, "--local-maps"}, "local maps beside another input",
                   "a refit description (JSON with per_layer_params; docs/refit-info.md)");
}

}  // namespace

Input read_input(const std::filesystem::path& file, const std::vector<Override>& overrides,
                 const std::optional<std::filesystem::path>& model,
                 const std::optional<std::filesystem::path>& local_maps) {
  const std::string text = read_any_text(file);
  if (std::optional<RefitInfo> info = find_refit_info(text, file))
    return read_refit_info(std::move(*info), overrides, local_maps);
  if (local_maps) refuse_local_maps(file);
  YamlDocument document(text, file.string());
  switch (kind_of(document)) {
    case InputKind::nemo_rl_recipe: return read_recipe(std::move(document), file, overrides, model);
    case InputKind::m2n_config: return read_m2n_config(std::move(document), file, overrides, model);
    case InputKind::refit_info:  // found before
    case InputKind::scenario: break;
  }
  std::vector<Override> settings = overrides;
  if (model) settings.emplace_back("model.config", quoted(*model));
  Input input;
  input.scenario = parse_scenario(text, file, settings);
  if (model) input.scenario.locations["model.config"] = {printable(file.string(), 4096), 0, "--model"};
  return input;
}

const Scenario& require_scenario(const Input& input) {
  raise_first(input.obstacles);
  if (!input.has_model) {
    throw InputError({input.scenario.file.string(), 0, "--model"}, "nothing",
                     "the model's config.json, which this file does not name");
  }
  return input.scenario;
}

std::vector<Override> apply_overrides(const std::vector<Override>& overrides, YamlDocument& document) {
  constexpr std::array<std::string_view, 6> of_scenario{"fabric", "refit",     "calibration",
                                                        "ranks",  "published", "name"};
  std::vector<Override> kept;
  for (const Override& setting : overrides) {
    const std::string_view top = std::string_view(setting.first).substr(0, setting.first.find('.'));
    if (std::find(of_scenario.begin(), of_scenario.end(), top) != of_scenario.end()) {
      kept.push_back(setting);
    } else {
      document.set(setting.first, setting.second);
    }
  }
  return kept;
}

Scenario complete_scenario(const Scenario& draft, const std::filesystem::path& model,
                           const std::vector<Override>& overrides, std::map<std::string, Location> names) {
  std::vector<Override> settings{{"model.config", quoted(model)}};
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  names["model"] = names["model.config"] = {printable(draft.file.string(), 4096), 0, "--model"};
  Scenario scenario = [&] {
    try {
      return parse_scenario(to_yaml(draft), draft.file, settings);
    } catch (const InputError& error) {  // lines of the text made here mean nothing to the user
      const auto name = names.find(error.where().key);
      if (name == names.end() || error.where().file.starts_with("--set ")) throw;
      throw InputError(name->second, error.message());
    }
  }();
  for (const auto& [key, place] : scenario.locations) {
    const bool overridden = place.file.starts_with("--set ") && key != "model.config";
    if (overridden) names[key] = place;
  }
  scenario.locations = std::move(names);
  return scenario;
}

std::vector<std::string> common_assumptions(const Scenario& scenario) {
  const FabricSpec& spec = scenario.fabric;
  const std::string nic = spec.nic_bandwidth ? to_string(*spec.nic_bandwidth) : "the preset's rate";
  return {fmt::format("fabric {} with {} hosts, {} per NIC (--set fabric.preset=..., fabric.hosts=..., "
                      "fabric.nic_bandwidth=...)",
                      spec.preset, spec.hosts, nic),
          fmt::format("calibration {} (--set calibration=...)", scenario.calibration),
          fmt::format("weights move as {}, multi-token prediction layers {}",
                      to_string(scenario.model->precision), scenario.model->mtp ? "included" : "left out")};
}

}  // namespace isthmus
