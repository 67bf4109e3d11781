#pragma once
// Loads of bench/star.hpp on the distribution's SimGrid (3.32 in Debian 12), where it is installed: an oracle
// for the fluid solver, and what its speed is compared with. Model CM02 without effects of TCP: no window, no
// cross traffic, no factors on bandwidth and latency. Of the two links of a route each has half the latency.
// `full` computes all rates at each event (network/optim:Full). The default keeps those that it takes to be
// unchanged, and is then not max-min: single flows of star_rnd/1024/4000 end up to 83 % late or early.
// SimGrid has one engine per process and gives nothing back: each run is a process of its own.

#include <cstddef>
#include <optional>
#include <vector>

#include "bench/star.hpp"

namespace isthmus::bench {

enum class SimgridUpdate : bool { selective, full };

struct SimgridRun {
  std::vector<double> ends;   // seconds, by flow
  double processor_time = 0;  // seconds, of platform and run
  double peak_bytes = 0;
};

/// None where the program was built without SimGrid, or where it failed.
std::optional<SimgridRun> run_on_simgrid(const StarLoad& load, SimgridUpdate update);

/// Whether the program was built with it.
bool has_simgrid();

}  // namespace isthmus::bench
