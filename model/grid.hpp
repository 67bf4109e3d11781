#pragma once
// Rank grids of the two engines and the layouts that follow from them, per tensor.
// Training (Megatron-LM): two grids over the same ranks, pipeline stage outermost. Within a stage of n = gpus
// / pp ranks the dense grid is [replicas = n / tp, tp], the expert grid [replicas = n / (ep etp), ep, etp];
// the last axis varies fastest. Context parallelism replicates weights and is part of the replica axis.
// Generation (vLLM): [engines, tp]; experts either over tp inside the engine, or whole ones over ep = tp.
// Axes of size 1 are dropped; a layout without axes keeps one of size 1.

#include "model/inventory.hpp"
#include "model/layout.hpp"
#include "model/scenario.hpp"

namespace isthmus {

/// Layers to pipeline stages: `first` on stage 0, `last` on the last, the rest dealt evenly (Megatron-LM).
struct StageMap {
  std::vector<int> layers;  // per stage
  int stage_of(const RefitTensor& tensor) const;
};

/// Raises InputError (train.layers_first, train.layers_last, train.pp) when the rest does not divide.
StageMap stage_map(const Scenario& scenario, int layers);

/// Raises InputError with the key at fault: sizes below 1, GPU counts that are no multiple of the grid,
/// expert counts that do not divide, ep that is neither 1 nor tp on the generation side, dp that contradicts
/// gpus / tp.
void require_valid_grids(const Scenario& scenario, const Inventory& inventory);

/// Layouts over local ranks 0 ... n - 1. Raise InputError (train.tp, generate.tp, ...) naming the tensor when
/// a dimension is not divided by its shard count; vocabulary dimensions are cut by the ceil rule instead
/// (engines pad).
Layout train_layout(const Scenario& scenario, const RefitTensor& tensor);
Layout generate_layout(const Scenario& scenario, const RefitTensor& tensor);

}  // namespace isthmus
