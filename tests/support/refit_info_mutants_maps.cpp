#include <algorithm>

#include "tests/support/refit_info_mutant_tools.hpp"

namespace isthmus::test::refit_info {
namespace {

bool halves_of_target(Json& document, const Shape&, std::size_t seed) {
  return exchange_halves(generation_map(document, seed), seed);
}

bool target_is_up_gate(Json& document, const Shape&, std::size_t seed) {
  return declare_up_gate(generation_map(document, seed), seed);
}

bool halves_of_source(Json& document, const Shape&, std::size_t seed) {
  return exchange_halves(training_map(document, seed), seed);
}

bool source_is_up_gate(Json& document, const Shape&, std::size_t seed) {
  return declare_up_gate(training_map(document, seed), seed);
}

bool claims_up_gate(Json& document, const Shape&, std::size_t seed) {
  Json& map = generation_map(document, seed);
  return fused_pair(map, seed).first != nullptr && declare_up_gate(map, seed);
}

bool name_missing_in_map(Json& document, const Shape&, std::size_t seed) {
  Json& map = any_map(document, seed);
  if (map["entries"].empty()) return false;
  const Json name = map["entries"][seed % map["entries"].size()]["tensor"];
  Json& entries = map["entries"];
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const Json& entry) { return entry["tensor"] == name; }),
                entries.end());
  return true;
}

/// Buffers of one dimension, each entry on a part of its own.
bool base_of_wrong_rank(Json& document, const Shape&, std::size_t seed) {
  Json& map = any_map(document, seed);
  if (map["entries"].empty()) return false;
  const Json base = map["entries"][seed % map["entries"].size()]["base"];
  bool changed = false;
  for (Json& entry : map["entries"]) {
    if (entry["base"] != base) continue;
    std::int64_t size = 1, part = 1;
    for (const Json& extent : entry["base_shape"]) size *= extent.get<std::int64_t>();
    for (const Json& ends : entry["after"]) part *= ends[1].get<std::int64_t>() - ends[0].get<std::int64_t>();
    changed = entry["before"].size() > 2 || entry["before"][0][1] != entry["before"][0][0].get<int>() + 1;
    entry["base_shape"] = {size};
    entry["base_strides"] = {1};
    entry["after"] = Json::array({{0, part}});
  }
  return changed;
}

bool offers_of_another_stage(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.pp == 1) return false;
  Json& map = training_map(document, seed);
  const auto stage = map["rank"].get<std::int64_t>() / shape.stage_ranks();
  Json& other = *find(maps(document), seed, [&](const Json& candidate) {
    return is_training(candidate) && candidate["rank"].get<std::int64_t>() / shape.stage_ranks() != stage;
  });
  map["entries"].push_back(other["entries"][0]);
  return true;
}

/// One more slot than there are experts.
bool slot_never_written(Json& document, const Shape&, std::size_t seed) {
  Json& map = generation_map(document, seed);
  Json* const expert = find(map["entries"], seed, is_expert);
  if (expert == nullptr) return false;
  const std::string layer = (*expert)["tensor"].get<std::string>().substr(
      0, (*expert)["tensor"].get<std::string>().find(".experts."));
  for (Json& entry : map["entries"]) {
    if (has(entry, layer + ".experts.")) entry["base_shape"][0] = entry["base_shape"][0].get<int>() + 1;
  }
  return true;
}

/// ... and the additional one is a copy of the first expert.
bool slot_is_a_copy(Json& document, const Shape&, std::size_t seed) {
  Json& map = generation_map(document, seed);
  const std::string name = (*find(map["entries"], seed, is_expert))["tensor"].get<std::string>();
  const std::string layer = name.substr(0, name.find(".experts.") + 9);
  Json copies = Json::array();
  std::vector<Json> seen;
  for (const Json& entry : map["entries"]) {
    const bool first = std::find(seen.begin(), seen.end(), entry["tensor"]) == seen.end();
    if (!has(entry, layer) || !first) continue;
    seen.push_back(entry["tensor"]);
    Json copy = entry;
    copy["before"][0][1] = copy["before"][0][0].get<int>() + 1;
    const int slots = copy["base_shape"][0].get<int>();
    copy["after"][0] = {slots - 1, slots};
    copies.push_back(copy);
  }
  for (const Json& copy : copies) map["entries"].push_back(copy);
  return true;
}

/// A local expert index used as a global one.
bool experts_mixed_up(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.ep == 1) return false;
  Json* const map = find(maps(document), seed, [&](const Json& candidate) {
    const bool second = candidate["rank"].get<std::int64_t>() % shape.ep != 0;
    const Json& entries = candidate["entries"];
    return is_training(candidate) && second && std::any_of(entries.begin(), entries.end(), is_expert);
  });
  if (map == nullptr) return false;
  const std::int64_t shift = (*map)["rank"].get<std::int64_t>() % shape.ep * (shape.experts / shape.ep);
  for (Json& entry : (*map)["entries"]) {
    if (!is_expert(entry)) continue;
    for (Json& end : entry["before"][0]) end = end.get<std::int64_t>() - shift;
  }
  return true;
}

/// Slots of one projection in another order than those of the others.
bool slots_disagree(Json& document, const Shape&, std::size_t seed) {
  Json& map = generation_map(document, seed);
  Json* const first = find(map["entries"], seed, is_expert);
  if (first == nullptr) return false;
  for (Json& other : map["entries"]) {
    if (other["tensor"] != (*first)["tensor"] || other["before"] == (*first)["before"]) continue;
    std::swap(other["after"], (*first)["after"]);
    return true;
  }
  return false;
}

/// An entry of a map, picked by the seed; null when it has none.
Json* any_entry(Json& map, std::size_t seed) {
  return map["entries"].empty() ? nullptr : &map["entries"][seed % map["entries"].size()];
}

/// Sets a key of all entries of one buffer.
bool set_of_base(Json& map, std::size_t seed, const std::function<void(Json&)>& change) {
  Json* const picked = any_entry(map, seed);
  if (picked == nullptr) return false;
  const Json base = (*picked)["base"];
  for (Json& entry : map["entries"]) {
    if (entry["base"] == base) change(entry);
  }
  return true;
}

bool repacked_buffer(Json& document, const Shape&, std::size_t seed) {
  return set_of_base(generation_map(document, seed), seed,
                     [](Json& entry) { entry["storage"] = "block128"; });
}

bool another_dtype(Json& document, const Shape&, std::size_t seed) {
  return set_of_base(any_map(document, seed), seed, [](Json& entry) { entry["dtype"] = "torch.float32"; });
}

bool elements_share_memory(Json& document, const Shape&, std::size_t seed) {
  Json& map = any_map(document, seed);
  Json* const picked = any_entry(map, seed);
  if (picked == nullptr || (*picked)["base_shape"][0].get<int>() < 2) return false;
  return set_of_base(map, seed, [](Json& entry) { entry["base_strides"][0] = 0; });
}

bool column_never_written(Json& document, const Shape&, std::size_t seed) {
  return set_of_base(generation_map(document, seed), seed, [](Json& entry) {
    Json& columns = entry["base_shape"].back();
    columns = columns.get<int>() + 1;
    for (auto stride = entry["base_strides"].rbegin(); stride != entry["base_strides"].rend(); ++stride)
      *stride = stride->get<int>() * 100;
  });
}

bool base_described_twice(Json& document, const Shape&, std::size_t seed) {
  Json& map = any_map(document, seed);
  const auto pair = fused_pair(map, seed);
  if (pair.first == nullptr) return false;
  (*pair.first)["base_shape"].back() = 1 + (*pair.first)["base_shape"].back().get<int>();
  return true;
}

bool past_the_end(Json& document, const Shape&, std::size_t seed) {
  Json* const entry = any_entry(any_map(document, seed), seed);
  if (entry == nullptr) return false;
  for (Json& end : (*entry)["after"].back()) end = end.get<int>() + 1;
  return true;
}

bool written_twice(Json& document, const Shape&, std::size_t seed) {
  const auto [gate, up] = fused_pair(any_map(document, seed), seed);
  if (gate == nullptr) return false;
  (*up)["after"] = (*gate)["after"];
  return true;
}

bool box_too_large(Json& document, const Shape&, std::size_t seed) {
  Json* const entry = any_entry(any_map(document, seed), seed);
  if (entry == nullptr) return false;
  (*entry)["before"].back()[1] = 100 + (*entry)["before"].back()[1].get<int>();
  return true;
}

bool boxes_of_other_extents(Json& document, const Shape&, std::size_t seed) {
  Json* const entry = any_entry(generation_map(document, seed), seed);
  if (entry == nullptr || (*entry)["before"].back()[1] == (*entry)["before"].back()[0].get<int>() + 1)
    return false;
  (*entry)["before"].back()[1] = (*entry)["before"].back()[1].get<int>() - 1;
  return true;
}

/// The rows of one tensor in two entries, exchanged.
bool rows_exchanged(Json& document, const Shape&, std::size_t seed) {
  Json& map = any_map(document, seed);
  Json* const entry = find(map["entries"], seed, [](const Json& candidate) {
    const Json& rows = candidate["before"].back();
    return (rows[1].get<int>() - rows[0].get<int>()) == 2;
  });
  if (entry == nullptr) return false;
  Json second = *entry;
  const int before = (*entry)["before"].back()[0], after = (*entry)["after"].back()[0];
  (*entry)["before"].back()[1] = before + 1;
  (*entry)["after"].back() = {after + 1, after + 2};
  second["before"].back()[0] = before + 1;
  second["after"].back() = {after, after + 1};
  map["entries"].push_back(second);
  return true;
}

/// Both back in their places: an entry cut in two.
bool rows_in_order(Json& document, const Shape&, std::size_t seed) {
  Json& entries = any_map(document, seed)["entries"];
  Json& second = entries.back();
  Json& first = *find(entries, 0, [&](const Json& candidate) {
    return candidate["tensor"] == second["tensor"] && candidate["base"] == second["base"] &&
           candidate["before"].back()[1] == second["before"].back()[0] &&
           candidate["before"][0] == second["before"][0];
  });
  std::swap(first["after"].back(), second["after"].back());
  return true;
}

bool buffer_of_another_layer(Json& document, const Shape&, std::size_t seed) {
  return set_of_base(generation_map(document, seed), seed, [](Json& entry) {
    std::string base = entry["base"];
    entry["base"] = base.insert(base.find("layers.") + 7, "9");
  });
}

bool map_missing(Json& document, const Shape&, std::size_t seed) {
  maps(document).erase(seed % maps(document).size());
  const Json& rest = maps(document);
  return std::any_of(rest.begin(), rest.end(), is_training);
}

bool map_twice(Json& document, const Shape&, std::size_t seed) {
  const Json copy = any_map(document, seed);
  maps(document).push_back(copy);
  return true;
}

bool map_of_no_rank(Json& document, const Shape& shape, std::size_t seed) {
  Json copy = generation_map(document, seed);
  copy["rank"] = shape.generate_ranks();
  maps(document).push_back(copy);
  return true;
}

}  // namespace

std::vector<RefitInfoMutant> map_mutants() {
  return {
      {"halves_of_target", "the two halves are exchanged", halves_of_target, target_is_up_gate},
      {"halves_of_source", "the two halves are exchanged", halves_of_source, source_is_up_gate},
      {"claims_up_gate", "the two halves are exchanged", claims_up_gate, nullptr},
      {"name_missing_in_map", "is not in the map of", name_missing_in_map, nullptr},
      {"base_of_wrong_rank", "dimensions, the tensor", base_of_wrong_rank, nullptr},
      {"offers_of_another_stage", "offers tensor", offers_of_another_stage, nullptr},
      {"slot_never_written", "would keep the previous version", slot_never_written, slot_is_a_copy},
      {"experts_mixed_up", "the region that mesh and placements give", experts_mixed_up, nullptr},
      {"slots_disagree", "one expert in each slot", slots_disagree, nullptr},
      {"repacked_buffer", "is in layout block128, the transfer writes canonical", repacked_buffer, nullptr},
      {"another_dtype", "is f32", another_dtype, nullptr},
      {"elements_share_memory", "the dimensions inside it span", elements_share_memory, nullptr},
      {"column_never_written", "would keep the previous version", column_never_written, nullptr},
      {"base_described_twice", "one description of each base", base_described_twice, nullptr},
      {"past_the_end", "a part of base", past_the_end, nullptr},
      {"written_twice", "twice, by", written_twice, nullptr},
      {"box_too_large", "the region that mesh and placements give", box_too_large, nullptr},
      {"boxes_of_other_extents", "size not conserved", boxes_of_other_extents, nullptr},
      {"rows_exchanged", "the elements of a tensor in their order", rows_exchanged, rows_in_order},
      {"buffer_of_another_layer", "receives", buffer_of_another_layer, nullptr},
      {"map_missing", "no map of", map_missing, nullptr},
      {"map_twice", "a second map of", map_twice, nullptr},
      {"map_of_no_rank", "one map of each rank from 0 to", map_of_no_rank, nullptr},
  };
}

}  // namespace isthmus::test::refit_info
