#pragma once
// A refit, resolved: every tensor with its source and target layout, every rank with its GPU, the fabric
// under them. Planner, checker, bound and simulator all start from this value; none of them reads the
// scenario again. Tensors with equal shape, dtype and relative layouts share one Geometry, whose mesh ranks
// are *local*: local rank v of a tensor's source is global rank source_base + v, of its target target_base +
// v. Ranks: members first, training ranks 0 ... train_ranks - 1, then generation ranks (bare tensors: as the
// scenario numbers them); then relay ranks, one for each GPU without a member in an NVLink domain with some,
// where any GPU may relay: no tensor has shards there. The grids are those of model/grid.hpp.

#include <optional>
#include <string>
#include <vector>

#include "model/disturbance.hpp"
#include "model/fabric.hpp"
#include "model/fused_view.hpp"
#include "model/input_fault.hpp"
#include "model/inventory.hpp"
#include "model/layout.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct Geometry {
  Layout source, target;  // local ranks; equal shape and dtype
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

struct RefitEntry {
  RefitTensor tensor;
  std::uint32_t geometry = 0;
  Rank source_base, target_base;
  int stage = 0;             // pipeline stage that holds it on the training side
  std::size_t declared = 0;  // bare tensors: the item of the scenario that it comes from
};

/// Where a bare tensor's shards stand in larger live buffers, as declared.
struct TensorViews {
  std::optional<FusedView> source{}, target{};
};

struct Refit {
  std::string name;
  Fabric fabric;
  std::vector<GpuId> gpu_of_rank;  // several ranks may share a GPU
  std::size_t train_ranks = 0;     // 0 for bare tensors
  std::size_t generate_ranks = 0;
  int stages = 1;
  std::vector<Geometry> geometries;
  std::vector<RefitEntry> tensors;  // in transfer order; index = TensorId
  RefitSpec settings;
  InventoryTotals totals;  // of the model in BF16; zero for bare tensors
  PrecisionTotals wire{};  // of what moves, as it travels; zero for bare tensors
  std::size_t relay_ranks = 0;
  Disturbances disturbances{};
  std::vector<TensorViews> views{};  // by tensor, or empty where all stand alone

  std::size_t ranks() const { return gpu_of_rank.size(); }
  std::size_t members() const { return gpu_of_rank.size() - relay_ranks; }
  const Geometry& geometry(TensorId tensor) const { return geometries[tensors[tensor.index()].geometry]; }
  GpuId gpu(Rank rank) const { return gpu_of_rank[rank.index()]; }
  /// Whether sources quantise some tensor before they send it.
  bool sources_quantise() const;
  /// Bytes of all tensors together, once each and without copies: the payload of this refit.
  Bytes payload() const;
  /// The most bytes of weights that one target rank holds once they are loaded, where it may quantise them.
  Bytes largest_live_share() const;
};

/// Bare tensors: the fabric has a GPU for each rank that is named.
std::vector<InputFault> rank_faults(const Scenario& scenario, const Fabric& fabric);

/// Resolves a scenario: reads the model's configuration, builds grids, layouts and fabric. Raises InputError
/// with the key at fault when counts do not match the grid, a parallel size does not divide, or the fabric is
/// too small.
Refit resolve(const Scenario& scenario);

/// Adds the relay ranks, in the order of their GPUs, to a refit that has its members, fabric and settings.
void add_relay_ranks(Refit& refit);

/// The fabric of a scenario; raises what Fabric raises, at the scenario's keys.
Fabric scenario_fabric(const Scenario& scenario);

}  // namespace isthmus
