#pragma once
// The unit of planner/rounds.hpp: how many bytes a pair of ports moves in a round. Rounds are as long as their
// longest unit, and a round whose ports are not all busy is lost time. So the unit is chosen such that whole
// transfers make it up, and such that pairs have whole units: cost(U) = sum over transfers of the fraction by
// which transfers of that size miss a multiple, plus sum over pairs of what their last, shorter unit leaves
// unused (k = floor(U / rest) rests share a round), both as fractions of all bytes.

#include <cstdint>
#include <vector>

#include "planner/rounds.hpp"

namespace isthmus {

/// How transfers of one size are cut further, and by what fraction of a unit whole ones then miss it.
struct UnitCut {
  std::int64_t parts = 1;
  double miss = 0;
};
/// The fewest parts of which some number is within a hundredth of a unit; where none is, the best.
UnitCut cut_for_unit(Bytes size, Bytes unit);

/// The cheapest unit between 0.6 and 1.5 times `wanted`.
Bytes fitting_unit(const std::vector<Transfer>& transfers, Bytes wanted, std::uint32_t depth);

}  // namespace isthmus
