#include "tests/support/refit_info_mutant_tools.hpp"

namespace isthmus::test {
namespace refit_info {

Json& info(Json& document) { return document["nccl_reshard_refit_info"]; }
Json& maps(Json& document) { return document["local_maps"]; }

bool is_generation(const Json& map) { return map["side"] == "generate"; }
bool is_training(const Json& map) { return map["side"] == "train"; }
bool is_any(const Json&) { return true; }

Json* find(Json& values, std::size_t seed, const std::function<bool(const Json&)>& property) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Json& value = values[(seed + i) % values.size()];
    if (property(value)) return &value;
  }
  return nullptr;
}

Json& generation_map(Json& document, std::size_t seed) { return *find(maps(document), seed, is_generation); }
Json& training_map(Json& document, std::size_t seed) { return *find(maps(document), seed, is_training); }
Json& any_map(Json& document, std::size_t seed) { return *find(maps(document), seed, is_any); }

std::vector<Json*> tensors(Json& document) {
  std::vector<Json*> result;
  for (auto& layer : info(document)["per_layer_params"]) {
    for (Json& tensor : layer) result.push_back(&tensor);
  }
  return result;
}
Json& tensor(Json& document, std::size_t seed) {
  const std::vector<Json*> all = tensors(document);
  return *all[seed % all.size()];
}

bool has(const Json& entry, std::string_view part) {
  return entry["tensor"].get<std::string>().find(part) != std::string::npos;
}
bool is_expert(const Json& entry) { return has(entry, ".experts."); }

std::pair<Json*, Json*> fused_pair(Json& map, std::size_t seed) {
  Json& entries = map["entries"];
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Json& gate = entries[(seed + i) % entries.size()];
    if (!has(gate, "gate_proj")) continue;
    for (Json& up : entries) {
      if (has(up, "up_proj") && up["base"] == gate["base"] && up["before"] == gate["before"])
        return {&gate, &up};
    }
  }
  return {nullptr, nullptr};
}

bool exchange_halves(Json& map, std::size_t seed) {
  const Json base = [&] {
    const auto pair = fused_pair(map, seed);
    return pair.first == nullptr ? Json() : (*pair.first)["base"];
  }();
  if (base.is_null()) return false;
  for (Json& gate : map["entries"]) {
    if (gate["base"] != base || !has(gate, "gate_proj")) continue;
    for (Json& up : map["entries"]) {
      if (up["base"] == base && has(up, "up_proj") && up["before"] == gate["before"])
        std::swap(gate["after"], up["after"]);
    }
  }
  return true;
}

bool declare_up_gate(Json& map, std::size_t seed) {
  const Json base = (*fused_pair(map, seed).first)["base"];
  for (Json& entry : map["entries"]) {
    if (entry["base"] == base) entry["storage"] = "up_gate";
  }
  return true;
}

}  // namespace refit_info

std::vector<RefitInfoMutant> refit_info_mutants() {
  std::vector<RefitInfoMutant> all = refit_info::description_mutants();
  for (const RefitInfoMutant& mutant : refit_info::map_mutants()) all.push_back(mutant);
  return all;
}

}  // namespace isthmus::test
