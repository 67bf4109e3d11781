#pragma once
// Puts the staging of a plan's instances into buffers that they share, at places that they reuse where the
// order of groups allows it and nowhere else; what finds no place keeps memory of its own. It looks at every
// rank and group by itself, and shares nothing with planner/check_buffers.cpp.
// Invariant: a correct plan stays correct under every schedule.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/support/plan_builder.hpp"

namespace isthmus::test {

/// Where an instance stages on a rank, and when.
struct Stay {
  std::set<std::uint32_t> lanes;
  std::uint32_t first = 0, last = 0;    // groups in which it touches staging at all
  std::vector<std::int64_t> low, high;  // box, half-open
  std::int64_t bytes = 0;               // that the box takes
};
/// By rank.
using Stays = std::map<std::uint32_t, Stay>;
Stays stays_of(const Plan& plan, const Refit& refit, const Instance& instance);

void share_staging(Plan& plan, const Refit& refit, const BuildOptions& options);

}  // namespace isthmus::test
