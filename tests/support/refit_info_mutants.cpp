#include <algorithm>

#include "tests/support/refit_info_mutant_tools.hpp"

namespace isthmus::test::refit_info {
namespace {

bool name_missing_in_description(Json& document, const Shape&, std::size_t seed) {
  const Json name = tensor(document, seed)["name"];
  for (auto& layer : info(document)["per_layer_params"]) {
    layer.erase(std::remove_if(layer.begin(), layer.end(), [&](const Json& t) { return t["name"] == name; }),
                layer.end());
  }
  return true;
}

bool misc_reordered(Json& document, const Shape&, std::size_t seed) {
  Json& order = any_map(document, seed)["misc_order"];
  if (order.size() < 2) return false;
  std::swap(order[seed % (order.size() - 1)], order[seed % (order.size() - 1) + 1]);
  return true;
}

bool misc_missing_in_map(Json& document, const Shape&, std::size_t seed) {
  Json& order = any_map(document, seed)["misc_order"];
  if (order.empty()) return false;
  order.erase(seed % order.size());
  return true;
}

bool misc_missing_in_description(Json& document, const Shape&, std::size_t seed) {
  for (Json& map : maps(document))
    map["misc_order"].push_back("model.layers.0.mlp.gate.e_score_correction_bias");
  return seed + 1 > 0;
}

bool output_layer_without_source(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.misc == 0) return false;
  generation_map(document, seed)["misc_order"].push_back("lm_head.weight");
  return true;
}

bool output_layer_is_tied(Json& document, const Shape&, std::size_t seed) {
  generation_map(document, seed)["ties"]["lm_head.weight"] = "model.embed_tokens.weight";
  return true;
}

bool misc_is_bulk_too(Json& document, const Shape&, std::size_t seed) {
  const std::string name = tensor(document, seed)["name"];
  info(document)["misc_meta"][name] = {{"shape", {1}}, {"dtype", "bf16"}};
  for (Json& map : maps(document)) map["misc_order"].push_back(name);
  return true;
}

bool layer_without_stage(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.pp == 1) return false;
  tensor(document, seed).erase("pp_stage");
  return true;
}

bool stage_past_the_last(Json& document, const Shape& shape, std::size_t seed) {
  tensor(document, seed)["pp_stage"] = shape.pp;
  return true;
}

bool tensor_on_two_stages(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.pp == 1) return false;
  Json copy = tensor(document, seed);
  const auto stage = copy["pp_stage"].get<std::int64_t>();
  copy["pp_stage"] = (stage + 1) % shape.pp;
  info(document)["per_layer_params"].back().push_back(copy);
  return true;
}

bool tensor_twice(Json& document, const Shape&, std::size_t seed) {
  const Json copy = tensor(document, seed);
  info(document)["per_layer_params"].back().push_back(copy);
  return true;
}

bool layer_on_two_stages(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.pp == 1) return false;
  Json& changed = tensor(document, seed);
  changed["pp_stage"] = (changed["pp_stage"].get<std::int64_t>() + 1) % shape.pp;
  return true;
}

/// Every rank holds its own rows, and the description says that it holds them all.
bool shard_taken_for_replica(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.tp == 1) return false;
  const std::vector<Json*> all = tensors(document);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Json& changed = *all[(seed + i) % all.size()];
    if (changed.contains("grouped_expert_proj")) continue;
    for (Json& placement : changed["src_placements"]) placement = "Replicate()";
    return true;
  }
  return false;
}

bool engine_with_too_few_ranks(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.engines == 1) return false;
  Json& changed = tensor(document, seed);
  Json ranks = Json::array();
  for (std::int64_t rank = 0; rank < shape.generate_tp; ++rank) ranks.push_back(shape.stage_ranks() + rank);
  changed["dst_mesh_info"] = ranks;
  changed["dst_placements"] = Json::array({"Replicate()"});
  return true;
}

/// Engines inside, shards outside: no engine holds a whole tensor.
bool engines_inside_out(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.engines == 1 || shape.generate_tp == 1) return false;
  Json& changed = tensor(document, seed);
  Json& placements = changed["dst_placements"];
  std::swap(placements[0], placements[1]);
  Json ranks = Json::array();
  for (std::int64_t rank = 0; rank < shape.generate_ranks(); ++rank)
    ranks.push_back(shape.stage_ranks() + rank);
  changed["dst_mesh_info"] = {{"shape", {shape.generate_tp, shape.engines}}, {"ranks", ranks}};
  return true;
}

/// Ranks of a mesh as a flat list, in place.
Json& flat_ranks(Json& mesh) {
  if (mesh.is_object() && mesh.contains("ranks")) return mesh["ranks"];
  Json& nested = mesh.is_object() ? mesh["mesh"] : mesh;
  return nested[0].is_array() ? nested[0] : nested;
}

bool rank_twice_in_mesh(Json& document, const Shape& shape, std::size_t seed) {
  if (shape.generate_tp == 1) return false;
  Json& ranks = flat_ranks(tensor(document, seed)["dst_mesh_info"]);
  ranks[1] = ranks[0];
  return true;
}

bool rank_outside_the_group(Json& document, const Shape& shape, std::size_t seed) {
  Json& changed = tensor(document, seed);
  flat_ranks(changed["src_mesh_info"])[0] = shape.stage_ranks();
  return true;
}

bool placement_of_no_dimension(Json& document, const Shape&, std::size_t seed) {
  tensor(document, seed)["src_placements"][0] = "Shard(3)";
  return true;
}

bool one_placement_more(Json& document, const Shape&, std::size_t seed) {
  tensor(document, seed)["dst_placements"].push_back("Replicate()");
  return true;
}

bool training_ranks_do_not_divide(Json& document, const Shape& shape, std::size_t) {
  if (shape.pp == 1) return false;
  info(document)["train_world_size"] = shape.train_ranks() + 1;
  return true;
}

bool projection_of_another_name(Json& document, const Shape&, std::size_t seed) {
  tensor(document, seed)["grouped_expert_proj"] = "qkv_proj";
  return true;
}

}  // namespace

std::vector<RefitInfoMutant> description_mutants() {
  return {
      {"name_missing_in_description", "has no source of that name", name_missing_in_description, nullptr},
      {"misc_reordered", "at position", misc_reordered, nullptr},
      {"misc_missing_in_map", "not in the order of", misc_missing_in_map, nullptr},
      {"misc_missing_in_description", "e_score_correction_bias", misc_missing_in_description, nullptr},
      {"output_layer_without_source", "if it is tied to model.embed_tokens.weight",
       output_layer_without_source, output_layer_is_tied},
      {"misc_is_bulk_too", "which is a bulk tensor too", misc_is_bulk_too, nullptr},
      {"layer_without_stage", "belongs to no pipeline stage", layer_without_stage, nullptr},
      {"stage_past_the_last", "pp_size is", stage_past_the_last, nullptr},
      {"tensor_on_two_stages", "held by stages", tensor_on_two_stages, nullptr},
      {"tensor_twice", "a second time", tensor_twice, nullptr},
      {"layer_on_two_stages", "of the same layer is", layer_on_two_stages, nullptr},
      {"shard_taken_for_replica", "over tp?", shard_taken_for_replica, nullptr},
      {"engine_with_too_few_ranks", "engine 0 should hold ranks", engine_with_too_few_ranks, nullptr},
      {"engines_inside_out", "engines that hold the whole tensor", engines_inside_out, nullptr},
      {"rank_twice_in_mesh", "stands twice in the mesh", rank_twice_in_mesh, nullptr},
      {"rank_outside_the_group", "mesh holds group rank", rank_outside_the_group, nullptr},
      {"placement_of_no_dimension", "of a tensor of", placement_of_no_dimension, nullptr},
      {"one_placement_more", "mesh axes", one_placement_more, nullptr},
      {"training_ranks_do_not_divide", "a multiple of pp_size", training_ranks_do_not_divide, nullptr},
      {"projection_of_another_name", "qkv_proj", projection_of_another_name, nullptr},
  };
}

}  // namespace isthmus::test::refit_info
