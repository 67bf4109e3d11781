#pragma once
// Rank grids of the two engines and the layouts that follow from them, per tensor.
// Training (Megatron-LM): two grids over the same ranks, pipeline stage outermost. Within a stage of n = gpus
// / pp ranks the dense grid is [replicas = n / tp, tp], the expert grid [replicas = n / (ep etp), ep, etp];
// the last axis varies fastest. Context parallelism replicates weights and is part of the replica axis.
// Generation (vLLM): [engines, tp]; experts either over tp inside the engine, or whole ones over ep = tp.
// Axes of size 1 are dropped; a layout without axes keeps one of size 1.
// The functions that end in _faults list every violation of their rules, in the order in which resolving a
// scenario meets them; the others raise the first of them as InputError.

#include <span>
#include <vector>

#include "model/input_fault.hpp"
#include "model/inventory.hpp"
#include "model/layout.hpp"
#include "model/scenario.hpp"

namespace isthmus {

/// Layers to pipeline stages by the scenario's layer_split (model/scenario.hpp).
struct StageMap {
  std::vector<int> layers;  // per stage
  int stage_of(const RefitTensor& tensor) const;
};

/// train.layers_first, train.layers_last, train.pp: the rest of the layers must divide.
std::vector<InputFault> stage_faults(const Scenario& scenario, int layers);
StageMap stage_map(const Scenario& scenario, int layers);

/// Sizes below 1, GPU counts that are no multiple of the grid, expert counts that do not divide, ep that is
/// neither 1 nor tp on the generation side, dp that contradicts gpus / tp.
std::vector<InputFault> grid_faults(const Scenario& scenario, const Inventory& inventory);

/// Dimensions that their shard count does not divide (train.tp, generate.tp, ...): one fault per key, naming
/// the first tensor and how many others there are. Vocabulary dimensions are cut by the ceil rule instead
/// (engines pad).
std::vector<InputFault> layout_faults(const Scenario& scenario, std::span<const RefitTensor> tensors);

/// Layouts over local ranks 0 ... n - 1.
Layout train_layout(const Scenario& scenario, const RefitTensor& tensor);
Layout generate_layout(const Scenario& scenario, const RefitTensor& tensor);

}  // namespace isthmus
