#pragma once
// Into which parts `balanced` cuts a cell (bytes with one set of holders and one of receivers): equally many
// for each receiver of a domain that shares it, each of at most half a round's unit.
// Invariant: the parts are disjoint and make up the cell; runs stay as long as the shape allows.

#include <vector>

#include "model/layout.hpp"

namespace isthmus {

/// Receivers share a cell only where each gets at least this: 1 MB, the size below which an operation's
/// fixed cost (4.5 us measured over NVLink) outweighs what splitting gains.
inline constexpr Bytes smallest_part{1'000'000};

/// Cuts a box into `parts` boxes along one dimension: the outermost that they divide or, but for the
/// innermost, cut into boxes that differ by at most a sixteenth, so that runs stay long and aligned; else the
/// longest.
std::vector<Region> split(const Region& box, std::int64_t parts);
/// The same in place of what `result` holds.
void split_into(const Region& box, std::int64_t parts, std::vector<Region>& result);

/// How many receivers share a cell.
std::int64_t shares_of(Bytes bytes, std::size_t receivers);

/// Into how many parts a cell is cut: as many for each receiver that shares it, of at most half a unit.
std::int64_t parts_of(Bytes bytes, std::size_t receivers, Bytes unit);

}  // namespace isthmus
