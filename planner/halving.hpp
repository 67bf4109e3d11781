#pragma once
// Euler partition of a bipartite graph with weighted edges, applied again and again: slots (edges) between
// senders and receivers (ports) are divided into an early and a late half, each half again, down to single
// rounds. Along a port, slots of like kind and size are neighbours in the order in which they are paired; one
// of each pair goes early. Pairs form paths and even cycles, along which early and late alternate, and a path
// is laid so that the ports at its ends come nearest to an even pace in bytes.
// Invariant: at every division each port has as many of its slots early as late, or one more.
// The slots of a range lie next to each other in memory, so that all but the first few divisions stay within
// the processor's caches: n slots take n x levels steps, 100 bytes a slot.

#include <cstdint>
#include <vector>

namespace isthmus {

struct HalvingSlot {
  std::uint32_t source = 0,
                target = 0;  // ports: any numbers below a common limit, senders apart from receivers
  std::uint32_t kind = 0;
  double bytes = 0;  // whole, below 2^53
};

/// The round of each slot, below 2^levels.
std::vector<std::uint32_t> rounds_by_halving(const std::vector<HalvingSlot>& slots, std::size_t ports,
                                             std::uint32_t levels);

}  // namespace isthmus
