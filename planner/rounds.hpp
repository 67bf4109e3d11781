#pragma once
// Order for many transfers between many ports: a round for each. Executed in this order at both ends, some
// rounds at a time, the flows finish within about a per cent of the busiest port's load, where an arbitrary
// order of the same flows can take many times as long.
// By halving: the transfers of a pair of ports are joined into slots of about busiest port / rounds bytes;
// all slots are divided into an early and a late half, each half again, and so on, down to single rounds. At
// every division each port has as many of its slots early as late, or one more, so that it gets its bytes at
// an even pace. Such a division always exists: slots of one port are paired, and one of two goes early; the
// pairs of senders and those of receivers form paths and even cycles, along which early and late alternate.
// (Euler partition of a bipartite graph, as used for colouring its edges: H. Gabow 1976.)
// What the last rounds bring may have to be passed on when all ports are idle again: these can be halved once
// more, so that less is under way at the end.
// Invariant: a transfer's round is at least `lag` above the rounds of all its feeds.

#include <cstdint>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

struct Transfer {
  std::uint32_t source = 0, target = 0;  // ports, any small numbers
  Bytes bytes;
};

/// `feed` must be in an earlier round than `transfer`, which comes later in the list of transfers.
struct Feed {
  std::uint32_t transfer = 0, feed = 0;
};

/// How many rounds transfers without feeds are spread over, if bytes suffice for slots of `smallest`.
struct RoundsWanted {
  std::uint32_t rounds = 256;  // a power of two, at most 2^30
  Bytes smallest{1};
  std::uint32_t lag = 1;       // at least
  std::uint32_t most_lag = 0;  // of many rounds a sixteenth, up to this
  std::uint32_t halved = 0;    // so many rounds at the end, a power of two, become two each; without feeds
};

/// The round of each transfer, from 0. Feeds must stand in the order of the transfers that they feed.
std::vector<std::uint32_t> order_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, const RoundsWanted& wanted);

}  // namespace isthmus
