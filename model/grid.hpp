#pragma once
// Who holds which part of a refit tensor on either side: the layouts that follow from the engines' grids.
// Training (Megatron-LM; model/rank_grid.hpp): within a stage of n = gpus / pp ranks the dense mesh is
// [replicas, tp], the expert mesh [replicas, ep, etp]. Context parallelism replicates weights and is part of
// the replica axis. FSDP cuts the replica axis into [replicas, shards] and shards every tensor once more, by
// ceil; experts have n / (ep etp x those replicas) shards.
// Generation (vLLM): engines of pp x tp ranks; within a stage dense [engines, tp], experts [.., ep, etp] over
// consecutive ranks of the stage, dealt by the balanced rule as vLLM's linear map does.
// k and v rows are whole heads: where an engine has more ranks than heads, it repeats them; Megatron-LM cuts
// the rows of its fused qkv evenly, and so are those of q, k and v here. Vocabularies are padded, then cut.
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

/// GPU counts that are no multiple of the grid, expert counts that do not divide, orders that
/// are none, dp that contradicts gpus / (tp pp).
/// Requires sizes of 1 or more, as readers grant.
std::vector<InputFault> grid_faults(const Scenario& scenario, const Inventory& inventory);

/// Dimensions that their shard count does not divide (train.tp, generate.tp, ...), and heads that it neither
/// divides nor repeats: one fault per key and rule, naming the first tensor and how many others there are.
std::vector<InputFault> layout_faults(const Scenario& scenario, std::span<const RefitTensor> tensors);

/// etp of the generation side: as given, else tp (ep 1), tp / ep where whole, else 1.
std::int64_t generate_etp(const GenerateSpec& generate);

/// Local ranks of the tensor's training stage, and of the whole generation side, of which `stage` holds it.
Layout train_layout(const Scenario& scenario, const RefitTensor& tensor);
Layout generate_layout(const Scenario& scenario, const RefitTensor& tensor, int stage = 0);

}  // namespace isthmus
