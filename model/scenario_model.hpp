#pragma once
// What a scenario's `model` stands for: the inventory it names, cut to `layers`, and the tensors that its
// refit moves, each bulk or misc by the scenario's own rule.
// Invariant: model_faults lists what the values of `model` do wrong; the reader raises the first of these.
// A configuration that cannot be read is an InputError either way.

#include <vector>

#include "model/input_fault.hpp"
#include "model/inventory.hpp"
#include "model/scenario.hpp"

namespace isthmus {

/// Whether what trains in BF16 is quantised before it is sent (`refit.quantize_at: source`).
bool sources_quantise(const Scenario& scenario);
/// What travels: `model.dtype`, or MXFP8 where sources quantise.
WirePrecision wire_precision(const Scenario& scenario);
/// The fault of `refit.quantize_at: source` where no receiver wants MXFP8.
InputFault nothing_to_quantise(const Scenario& scenario);

/// As the configuration says, all layers: a config.json, a manifest or a checkpoint (model/checkpoint.hpp).
Inventory read_full_inventory(const Scenario& scenario);
std::vector<InputFault> model_faults(const Scenario& scenario, const Inventory& full);
/// Cuts the inventory to the scenario's layers; raises the first of model_faults.
Inventory cut_inventory(const Scenario& scenario, Inventory full);

/// The tensors of the refit in transfer order.
std::vector<RefitTensor> list_tensors(const Scenario& scenario, const Inventory& inventory);

}  // namespace isthmus
