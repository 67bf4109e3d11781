#pragma once
// How much room the resources that an operation needs had in a given time: 1 - the load of the busiest.
// Load: what the phases of all operations put on the resource in that time, each spread evenly from its
// begin to its end, over what the resource can carry. Resources: links (of equally used ones the narrowest),
// caps of collectives, host threads, memories. Invariant: room is in [0, 1].

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/terms.hpp"

namespace isthmus::sim {

struct RoomQuery {
  std::uint32_t operation = 0;  // for what this one needs
  Instant begin, end;           // begin < end
};

struct Room {
  double links = 1, cap = 1, own = 1;  // on its route; of the cap of collectives; host thread and memory
  double least() const { return std::min({links, cap, own}); }
};

/// For each query. Costs a sort of the operations that use what is asked about.
std::vector<Room> room(const FinishedRun& run, const std::vector<RoomQuery>& queries);

}  // namespace isthmus::sim
