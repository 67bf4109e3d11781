#pragma once
// Internal to the checker: exact questions about sets of boxes, without looking at single elements.
// A set of boxes inside a box B writes every element of B exactly once if and only if no two of them meet and
// their volumes add up to B's. So pairwise disjointness and a sum are all that is needed; the disjointness is
// a sweep along the dimension in which the boxes differ most (n log n for slabs, about n^1.5 for grids).

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/layout.hpp"

namespace isthmus {

/// A box and the step that it belongs to.
struct StepBox {
  const Region* region = nullptr;
  std::uint32_t step = 0;
};

/// Two boxes that have an element in common, or nullopt. Reorders `boxes`.
std::optional<std::pair<StepBox, StepBox>> first_overlap(std::vector<StepBox>& boxes);

/// True when the parts, each of them inside `box`, cover it.
bool covers(const Region& box, const std::vector<Region>& parts);

/// The first element (in row-major order) of `box` that no part has. Requires that there is one.
std::vector<std::int64_t> first_missing(const Region& box, const std::vector<Region>& parts);

/// The first element of a box.
std::vector<std::int64_t> first_element(const Region& box);

}  // namespace isthmus
