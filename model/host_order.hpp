#pragma once
// Ways to deal hosts to the two sides of a refit, as a scenario's `ranks`. The first n = train + generate
// hosts of the fabric are used. By shares: of the first k of them floor(k train / n) train, so
//   contiguous    the first ones train
//   interleaved   host k trains where that number grows at k
//   co_racked     each rack (consecutive hosts whose first GPUs share a leaf) has its share of both, training
//                 first
//   rail_aligned  contiguous, ranks along the rails
// Invariant: both sides ascend and share no host.

#include "model/fabric.hpp"
#include "model/scenario.hpp"
#include "model/sweep_space.hpp"

namespace isthmus {

struct HostOrder {
  std::optional<SideRanks> train, generate;  // unset: contiguous, as in a scenario
  friend bool operator==(const HostOrder&, const HostOrder&) = default;
};

/// Hosts beyond the fabric's end are named all the same, for its validator to judge.
HostOrder host_order(PlacementKind kind, const Fabric& fabric, int train_gpus, int generate_gpus);

}  // namespace isthmus
