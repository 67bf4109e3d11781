#pragma once
// A layout seen from its data: the distinct non-empty regions and who holds each. Shared by policies and
// bound. Invariant: regions are pairwise disjoint and in order of first appearance in the mesh; holders are
// local ranks in mesh order.

#include <cstdint>
#include <vector>

#include "model/layout.hpp"
#include "model/refit.hpp"

namespace isthmus {

struct Shard {
  Region region;
  std::vector<std::uint32_t> holders;  // local ranks (base 0)
};

std::vector<Shard> distinct_shards(const Layout& layout);

/// A source shard's overlap with a target shard: the largest box whose elements all have the same holders and
/// the same receivers.
struct Cell {
  Region region;
  std::uint32_t source = 0;  // index of the source shard
  std::uint32_t target = 0;  // index of the target shard
};

struct Cells {
  std::vector<Shard> sources, targets;
  std::vector<Cell> list;  // by target shard, then source shard
};

Cells cells_of(const Geometry& geometry);

/// True when some rank is on both sides of the tensor: then plans depend on the distance of the two bases.
bool sides_overlap(const Geometry& geometry, Rank source_base, Rank target_base);

}  // namespace isthmus
