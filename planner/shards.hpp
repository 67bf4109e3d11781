#pragma once
// A layout seen from its data: the distinct non-empty regions and who holds each. Shared by policies and
// bound. Invariant: regions are pairwise disjoint and in order of first appearance in the mesh; holders are
// local ranks in mesh order.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/layout.hpp"
#include "model/refit.hpp"

namespace isthmus {

/// intersect() of boxes that meet, where a call would take longer than the work.
inline Region common_box(const Region& a, const Region& b) {
  Region common;
  common.dimensions = a.dimensions;
  for (std::size_t d = 0; d < a.dimensions; ++d) {
    common.begin[d] = std::max(a.begin[d], b.begin[d]);
    common.end[d] = std::min(a.end[d], b.end[d]);
  }
  return common;
}

/// Whether two boxes that are not empty have an element in common.
inline bool boxes_meet(const Region& a, const Region& b) {
  for (std::size_t d = 0; d < a.dimensions; ++d)
    if (std::max(a.begin[d], b.begin[d]) >= std::min(a.end[d], b.end[d])) return false;
  return true;
}

struct Shard {
  Region region;
  std::vector<std::uint32_t> holders;  // local ranks (base 0)
};

std::vector<Shard> distinct_shards(const Layout& layout);

/// A source shard's overlap with a target shard: the largest box whose elements all have the same holders and
/// the same receivers. The box follows from the shards: a tensor can have millions of cells.
struct Cell {
  std::uint32_t source = 0;  // index of the source shard
  std::uint32_t target = 0;  // index of the target shard
};

struct Cells {
  std::vector<Shard> sources, targets;
  std::vector<Cell> list;  // by target shard, then source shard; none is empty

  Region region(Cell cell) const {
    return common_box(sources[cell.source].region, targets[cell.target].region);
  }
};

Cells cells_of(const Geometry& geometry);

/// True when some rank is on both sides of the tensor: then plans depend on the distance of the two bases.
bool sides_overlap(const Geometry& geometry, Rank source_base, Rank target_base);

}  // namespace isthmus
