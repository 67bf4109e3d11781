#pragma once
// Whether rates are max-min, judged without the solver that found them: a snapshot of all rates and
//     1. no resource carries more than its capacity;
//     2. every class with flows runs at its cap, or crosses a full resource on which no class is faster.
// Max-min rates are the only ones with both properties. Full: less is left than one unit of rate for each
// flow, which is what rounding rates down can lose. Units as in sim/fluid.hpp; rates are per priority.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "model/units.hpp"

namespace isthmus::sim {

struct Allocation {
  static constexpr std::uint64_t no_cap = std::numeric_limits<std::uint64_t>::max();
  struct Share {
    std::uint32_t resource = 0;
    std::uint64_t weight = 0;  // of one flow
  };
  struct Group {
    std::vector<Share> shares;
    std::uint64_t flows = 0;
    std::uint64_t rate = 0;
    std::uint64_t cap = no_cap;
  };
  std::vector<Uint128> capacities;
  std::vector<Group> classes;
};

/// Empty when the rates are max-min; else what is wrong.
std::string certify(const Allocation& allocation);

}  // namespace isthmus::sim
