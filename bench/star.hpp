#pragma once
// Loads between hosts of one switch, and a run of them on the fluid solver: construction and all events, one
// thread. Each source and each target has a port of its own; a flow uses one of each, starts `latency` after
// it may, and ends when its last byte has drained.
// star_rnd: all flows at once. star_seq: each source keeps `window` in flight. The first half of the hosts
// are sources, the others targets; ports of 50 GB/s, 2 links of 1 us, sizes uniform in [1 MiB, 17 MiB).
// pairs: 256 x 64 flows of [16 MB, 24 MB), no latency. all_to_all: n x n flows of 1 MB.
// Invariant: random numbers are splitmix64 with seed 1, in the order source, target, size.

#include <cstdint>
#include <vector>

#include "model/units.hpp"

namespace isthmus::bench {

struct StarFlow {
  std::uint32_t source = 0, target = 0;  // counted apart
  std::int64_t bytes = 0;
  Instant start{};  // where the load has no window: not before; in the order of time
};

struct StarLoad {
  std::uint32_t sources = 0, targets = 0;
  std::size_t window = 0;  // flows in flight per source; 0: all
  Duration latency;
  std::vector<std::int64_t> ports;  // bytes per second, of sources, then of targets
  std::vector<StarFlow> flows;

  /// Flows by source, in their order: what a window lets pass one after the other.
  std::vector<std::vector<std::uint32_t>> by_source() const;
};

StarLoad random_star(std::uint32_t hosts, std::size_t flows, std::size_t window);
StarLoad pairs();
StarLoad all_to_all(std::uint32_t gpus);

/// When each flow ends.
std::vector<Instant> run_star(const StarLoad& load);

}  // namespace isthmus::bench
