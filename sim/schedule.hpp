#pragma once
// What happens to the resources of a run while it lasts: capacities from which instant on, flow classes that
// cannot move then, what they are replaced by, and endless flows of the background. Resources and classes are
// those of a Network (sim/network.hpp) that the disturbances of sim/interference.hpp were built into.
// Background: n flows on a resource of capacity C with a cap of rate / n each, where rate = share x C or as
// given. Max-min gives each of them the lower of its cap and its fair share.
// Invariant: a class is down exactly while it uses a resource of capacity 0.

#include <cstdint>
#include <vector>

#include "model/disturbance.hpp"
#include "model/units.hpp"

namespace isthmus::sim {

struct Schedule {
  struct Capacity {
    std::uint32_t resource = 0;
    std::int64_t capacity = 0;
  };
  struct Period {
    Instant begins;
    std::vector<Capacity> capacities;    // that hold from then on
    std::vector<char> down;              // by class
    std::vector<std::uint32_t> detours;  // by class: another one; Demand::none without a way around
  };
  struct Background {
    std::uint32_t flow_class = 0;
    std::uint32_t flows = 1;
    std::uint32_t load = 0;   // of Interference::loads
    std::int64_t wanted = 0;  // by all of its flows together, per second
  };

  std::vector<Period> periods{};  // in the order of time
  std::vector<Background> background{};
  FailureRule rule{};

  bool none() const { return periods.empty() && background.empty(); }
};

}  // namespace isthmus::sim
