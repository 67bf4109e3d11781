#pragma once
// The tensors of a model by what layouts depend on: a model of a thousand tensors is some twenty classes.
// What a sweep asks of a layout (faults, memory, bytes that cross) it asks of one tensor per class.
// Memory of a GPU, in bytes, over the tensors that it holds, with its shard's elements e:
//   generation  the shard as the engine keeps it once loaded (quantised where it quantises)
//   training    e x (2 + 4 + 12 / replicas): BF16 weight, FP32 gradient, and FP32 master copy with Adam's
//               two moments, which a distributed optimiser (Megatron-LM) shards over the ranks with an equal
//               shard
// The figure of a side is that of its fullest GPU. Copies (ties, repeated experts) count where they are held.

#include <cstdint>
#include <vector>

#include "model/inventory.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct TensorClass {
  RefitTensor tensor;                  // one of them
  std::vector<std::uint32_t> members;  // in transfer order
};

struct ClassedTensors {
  std::vector<RefitTensor> tensors;  // in transfer order
  std::vector<TensorClass> classes;
};

/// By shape, dtype, cut and role. The tensors are those of the scenario (model/scenario_model.hpp).
ClassedTensors classed(std::vector<RefitTensor> tensors);

/// How many tensors of each class each pipeline stage holds: [stage][class].
using StageCounts = std::vector<std::vector<std::int64_t>>;
/// Require a scenario without stage faults.
StageCounts train_stage_counts(const Scenario& scenario, const ClassedTensors& tensors, int layers);
StageCounts generate_stage_counts(const Scenario& scenario, const ClassedTensors& tensors, int layers);

/// Require a scenario without faults of layouts.
Bytes train_memory(const Scenario& scenario, const ClassedTensors& tensors, int layers);
Bytes generate_memory(const Scenario& scenario, const ClassedTensors& tensors, int layers);

}  // namespace isthmus
