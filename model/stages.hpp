#pragma once
// Layers to pipeline stages, on either side.
// Training, by the first of these that the scenario sets: `stages` (a list of layers per stage);
// `layer_split: proportional` (layer l of L on stage l pp / L, rounded down); Megatron-LM's rule:
// layers_first and layers_last, the rest the same number each. With vpp chunks per stage, each stage's layers
// are cut into vpp equal chunks; layers are dealt chunk round by chunk round, in each round to the stages in
// order.
// Generation: `stages`, or vLLM's rule: L / pp each, what is left over one by one to the last stages but one.

#include <vector>

#include "model/input_fault.hpp"
#include "model/inventory.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct StageMap {
  int stages = 1;
  std::vector<int> of_layer;
  /// Layers at or past the last one (multi-token prediction) are on the last stage.
  int stage_of(const RefitTensor& tensor) const;
};

/// Layers that the stages do not divide, lists that do not hold each layer once, rules that exclude each
/// other; both sides.
std::vector<InputFault> stage_faults(const Scenario& scenario, int layers);

/// Raise the first fault of their side as InputError.
StageMap train_stage_map(const Scenario& scenario, int layers);
StageMap generate_stage_map(const Scenario& scenario, int layers);

}  // namespace isthmus
