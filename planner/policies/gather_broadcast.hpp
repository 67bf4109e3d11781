#pragma once
// Packed broadcasts of full tensors, one instance per tensor: what `gather-broadcast` does with all tensors,
// and the policies that reshard bulk tensors do with the rest. Packet i travels on lane (i mod
// `refit.buffers`) from `first_lane` on, in the groups from `first_group` + 4 i on (export to the pipeline
// stages, gather, broadcast, load). A packet closes when its total reaches `refit.packet_bytes`.

#include <cstdint>

#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "planner/policies/pattern_cache.hpp"

namespace isthmus {

class PacketWriter {
 public:
  /// The plan has a lane for each of `refit.buffers`, from `first_lane` on, that coalesces.
  PacketWriter(const Refit& refit, Plan& plan, std::uint32_t first_group = 0, LaneId first_lane = {})
      : refit_(refit), plan_(plan), cache_(plan), first_group_(first_group), first_lane_(first_lane) {}

  void add(TensorId tensor);

 private:
  const Refit& refit_;
  Plan& plan_;
  PatternCache cache_;
  std::uint32_t first_group_, packet_ = 0;
  LaneId first_lane_;
  Bytes filled_;
};

}  // namespace isthmus
