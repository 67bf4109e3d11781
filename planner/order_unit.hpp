#pragma once
// The unit of planner/rounds.hpp: how many bytes a pair of ports moves in a round. Rounds are as long as
// their longest unit, and a round whose ports are not all busy is lost time. So the unit is chosen such that
// whole transfers make it up and pairs have whole units. cost(U) is the sum of
//   over transfers: bytes times the fraction of U by which transfers of that size miss a multiple
//   over pairs: bytes that the last, shorter unit leaves unused; floor(U / rest) rests share a round
//   where transfers feed each other in rows of d >= 2: all bytes times d U / bytes into the busiest port,
//   for such rows take d rounds to fill

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

/// The cheapest unit between 0.6 and 1.5 times `wanted`. `depth`: the longest row of transfers that feed
/// each other.
Bytes fitting_unit(const std::vector<Transfer>& transfers, Bytes wanted, std::uint32_t depth);

}  // namespace isthmus
