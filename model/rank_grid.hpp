#pragma once
// The ranks of a training stage as a grid (Megatron-LM): axes of given sizes, dealt in the order of a string
// such as tp-cp-ep-dp-pp, the leftmost varying fastest: rank = sum over axes of coordinate x product of the
// sizes to its left. Axes that the string leaves out come last and have size 1. pp is last, so that stages
// are consecutive ranks. Two such grids lie over the same ranks: the dense one (no ep) and the expert one
// (etp in the place of tp, no cp; dp is then what is left).
// Invariant: every rank of the stage has one coordinate (a bijection).

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

struct RankGrid {
  std::int64_t tp = 1, cp = 1, ep = 1, dp = 1;

  std::int64_t ranks() const { return tp * cp * ep * dp; }
};

/// True when `order` has each axis of tp, cp, ep, dp, pp at most once, separated by dashes, and pp last.
bool is_rank_order(std::string_view order);

/// Ranks of a stage, row-major over [replicas / shards, ep, tp, shards]. Replicas are the coordinates of cp
/// and dp by ascending rank; consecutive ones shard a tensor (FSDP). Requires is_rank_order and that `shards`
/// divides cp x dp.
std::vector<Rank> grid_ranks(std::string_view order, const RankGrid& grid, std::int64_t shards);

}  // namespace isthmus
