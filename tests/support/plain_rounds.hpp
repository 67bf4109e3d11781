#pragma once
// The algorithm of planner/halving.hpp and planner/rounds.hpp written down plainly: lists are copied at every
// division, kinds and pairs are looked up in maps. An oracle for small cases; equal to the fast one in every
// round, since both take slots in the same order wherever several would do.

#include <cstdint>
#include <vector>

#include "planner/halving.hpp"
#include "planner/rounds.hpp"

namespace isthmus::test {

std::vector<std::uint32_t> plain_halving(const std::vector<HalvingSlot>& slots, std::uint32_t levels);

std::vector<std::uint32_t> plain_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, const RoundsWanted& wanted);

}  // namespace isthmus::test
