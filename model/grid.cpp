#include "model/grid.hpp"

#include <fmt/format.h>

namespace isthmus {
namespace {

struct Axis {
  std::int64_t size;
  Placement placement;
  std::string_view key;  // the setting that sizes it
};

/// The dimension that tensor parallelism cuts; experts are stacked in front.
Placement tensor_parallel_placement(const RefitTensor& tensor) {
  const int shift = tensor.expert ? 1 : 0;
  const auto dimensions = static_cast<int>(tensor.shape.size()) - shift;
  switch (tensor.tensor_parallel) {
    case TensorParallel::replicated: break;
    case TensorParallel::rows:
    case TensorParallel::vocabulary: return {shift};
    case TensorParallel::columns: return {dimensions > 1 ? shift + 1 : Placement::replicated};
  }
  return {};
}

Layout make_layout(const Scenario& scenario, const RefitTensor& tensor, const std::vector<Axis>& axes) {
  Layout layout;
  layout.shape = tensor.shape;
  layout.dtype = tensor.dtype;
  layout.chunk_rule =
      tensor.tensor_parallel == TensorParallel::vocabulary ? ChunkRule::ceil : ChunkRule::even;
  std::vector<std::int64_t> mesh_shape;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    mesh_shape.push_back(axis.size);
    layout.placements.push_back(axis.placement);
    if (axis.placement == Placement{} || layout.chunk_rule == ChunkRule::ceil) continue;
    const std::int64_t extent = tensor.shape[to_size(axis.placement.dimension)];
    if (extent % axis.size != 0) {
      throw InputError(
          scenario.at(axis.key), fmt::format("{}", axis.size),
          fmt::format("a divisor of {}, dimension {} of {}", extent, axis.placement.dimension, tensor.name));
    }
  }
  if (mesh_shape.empty()) {
    mesh_shape.push_back(1);
    layout.placements.emplace_back();
  }
  layout.mesh = contiguous_mesh(std::move(mesh_shape), Rank{0});
  return layout;
}

void require_at_least_one(const Scenario& scenario, std::string_view key, int value) {
  if (value < 1) throw InputError(scenario.at(key), fmt::format("{}", value), "1 or more");
}

void require_multiple(const Scenario& scenario, std::string_view key, int gpus, std::int64_t grid,
                      std::string_view formula) {
  if (gpus % grid == 0) return;
  throw InputError(scenario.at(key), fmt::format("{} GPUs", gpus),
                   fmt::format("a multiple of {} = {}", formula, grid));
}

void require_expert_divisor(const Scenario& scenario, std::string_view key, int ep, std::int64_t experts) {
  if (ep == 1) return;
  if (experts == 0) throw InputError(scenario.at(key), fmt::format("{}", ep), "1 (the model has no experts)");
  if (experts % ep != 0) {
    throw InputError(scenario.at(key), fmt::format("{}", ep),
                     fmt::format("a divisor of the {} experts", experts));
  }
}

int expert_tensor_parallel(const TrainSpec& train) { return train.etp.value_or(train.tp); }

void require_valid_train(const Scenario& scenario, const Inventory& inventory) {
  const TrainSpec& train = *scenario.train;
  require_at_least_one(scenario, "train.gpus", train.gpus);
  require_at_least_one(scenario, "train.tp", train.tp);
  require_at_least_one(scenario, "train.cp", train.cp);
  require_at_least_one(scenario, "train.ep", train.ep);
  require_at_least_one(scenario, "train.pp", train.pp);
  require_at_least_one(scenario, "train.etp", expert_tensor_parallel(train));
  require_multiple(scenario, "train.gpus", train.gpus, std::int64_t{train.tp} * train.cp * train.pp,
                   "tp x cp x pp");
  if (inventory.experts > 0) {
    require_multiple(scenario, "train.gpus", train.gpus,
                     std::int64_t{expert_tensor_parallel(train)} * train.ep * train.pp, "etp x ep x pp");
  }
  require_expert_divisor(scenario, "train.ep", train.ep, inventory.experts);
}

void require_valid_generate(const Scenario& scenario, const Inventory& inventory) {
  const GenerateSpec& generate = *scenario.generate;
  require_at_least_one(scenario, "generate.gpus", generate.gpus);
  require_at_least_one(scenario, "generate.tp", generate.tp);
  require_at_least_one(scenario, "generate.ep", generate.ep);
  require_multiple(scenario, "generate.gpus", generate.gpus, generate.tp, "tp");
  if (generate.dp && *generate.dp != generate.gpus / generate.tp) {
    throw InputError(scenario.at("generate.dp"), fmt::format("{}", *generate.dp),
                     fmt::format("gpus / tp = {}", generate.gpus / generate.tp));
  }
  if (generate.ep != 1 && generate.ep != generate.tp) {
    throw InputError(scenario.at("generate.ep"), fmt::format("{}", generate.ep),
                     fmt::format("1 or tp = {}", generate.tp));
  }
  require_expert_divisor(scenario, "generate.ep", generate.ep, inventory.experts);
}

}  // namespace

int StageMap::stage_of(const RefitTensor& tensor) const {
  if (tensor.home == Home::first_stage) return 0;
  const int last = static_cast<int>(layers.size()) - 1;
  if (tensor.home == Home::last_stage) return last;
  int first_layer = 0;
  for (int stage = 0; stage < last; ++stage) {
    first_layer += layers[to_size(stage)];
    if (tensor.layer < first_layer) return stage;
  }
  return last;
}

StageMap stage_map(const Scenario& scenario, int layers) {
  const TrainSpec& train = *scenario.train;
  if (train.layers_first && train.layers_last && train.pp == 1) {
    throw InputError(scenario.at("train.layers_last"), "layers_first and layers_last",
                     "one of them when pp is 1");
  }
  const int rest = layers - train.layers_first.value_or(0) - train.layers_last.value_or(0);
  const int even_stages = train.pp - (train.layers_first ? 1 : 0) - (train.layers_last ? 1 : 0);
  const bool fits = rest >= 0 && (even_stages == 0 ? rest == 0 : rest % even_stages == 0);
  if (!fits) {
    const std::string_view key = train.layers_first  ? "train.layers_first"
                                 : train.layers_last ? "train.layers_last"
                                                     : "train.pp";
    throw InputError(scenario.at(key),
                     fmt::format("{} of {} layers left for {} stages", rest, layers, even_stages),
                     "a rest that the stages divide (set layers_first and layers_last)");
  }
  const int middle = even_stages == 0 ? 0 : rest / even_stages;
  StageMap map{std::vector<int>(to_size(train.pp), middle)};
  if (train.layers_first) map.layers.front() = *train.layers_first;
  if (train.layers_last) map.layers.back() = *train.layers_last;
  return map;
}

void require_valid_grids(const Scenario& scenario, const Inventory& inventory) {
  require_valid_train(scenario, inventory);
  require_valid_generate(scenario, inventory);
}

Layout train_layout(const Scenario& scenario, const RefitTensor& tensor) {
  const TrainSpec& train = *scenario.train;
  const std::int64_t ranks = train.gpus / train.pp;
  const Placement split = tensor_parallel_placement(tensor);
  if (!tensor.expert) {
    return make_layout(scenario, tensor,
                       {{ranks / train.tp, {}, "train.gpus"}, {train.tp, split, "train.tp"}});
  }
  const int etp = expert_tensor_parallel(train);
  return make_layout(scenario, tensor,
                     {{ranks / (train.ep * etp), {}, "train.gpus"},
                      {train.ep, {0}, "train.ep"},
                      {etp, split, train.etp ? "train.etp" : "train.tp"}});
}

Layout generate_layout(const Scenario& scenario, const RefitTensor& tensor) {
  const GenerateSpec& generate = *scenario.generate;
  const bool whole_experts = tensor.expert && generate.ep > 1;
  const Placement split = whole_experts ? Placement{0} : tensor_parallel_placement(tensor);
  return make_layout(scenario, tensor,
                     {{generate.gpus / generate.tp, {}, "generate.gpus"},
                      {generate.tp, split, whole_experts ? "generate.ep" : "generate.tp"}});
}

}  // namespace isthmus
