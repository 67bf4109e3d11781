#pragma once
// The two sides of the layouts of a sweep, each judged by itself: a side's faults and memory do not depend on
// the other side. One of these per model of the space.
// Invariant: a fault's reason is the key that `isthmus validate` names for a scenario with this side, or one
// of train.dp, generate.dp, memory.train, memory.generate, which are the space's own. Rules are asked for
// one tensor per class (model/tensor_classes.hpp).

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/fabric.hpp"
#include "model/inventory.hpp"
#include "model/sweep_space.hpp"
#include "model/tensor_classes.hpp"

namespace isthmus::report {

struct SideFault {
  std::string reason, example;
  bool found() const { return !reason.empty(); }
};

/// All combinations of a side's lists, the last list varying fastest.
std::vector<TrainSpec> train_specs(const SweepSpace& space);
std::vector<GenerateSpec> generate_specs(const SweepSpace& space);

/// The space as a scenario with these sides, contiguous, with the first of all other choices.
Scenario sweep_side_scenario(const SweepSpace& space, std::uint32_t model, const TrainSpec& train,
                             const GenerateSpec& generate);
Fabric sweep_fabric(const SweepSpace& space);
SideFault placement_fault(const Scenario& scenario, const Fabric& fabric);

class SweepSides {
 public:
  SweepSides(const SweepSpace& space, std::uint32_t model);

  int layers() const { return inventory_.layers; }
  /// The tensors under a bulk rule of the space; engines with stages may hold one more.
  const ClassedTensors& tensors(std::uint32_t bulk, int generate_stages);
  /// Sets layers_first and layers_last where pp does not divide the layers.
  void balance_layers(TrainSpec& train) const;

  SideFault train_fault(const TrainSpec& train, Bytes& memory);
  SideFault generate_fault(const GenerateSpec& generate, Bytes& memory);

 private:
  const SweepSpace& space_;
  std::uint32_t model_;
  Inventory inventory_;
  std::vector<std::array<std::optional<ClassedTensors>, 2>>
      tensors_;  // by bulk rule, then one or more stages
};

}  // namespace isthmus::report
