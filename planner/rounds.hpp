#pragma once
// Order for many transfers between many ports: a matching per round. In a round each GPU sends about `unit`
// bytes to one GPU and receives as much from one; only remainders below a unit share a round with others.
// Executed in this order at both ends, the flows finish within a few per cent of the busiest port's load,
// where an arbitrary order of the same flows can take many times as long. Greedy: the ports with the most
// bytes left choose first, among free partners the one with the most left. Invariant: a transfer's round is
// above the rounds of all its feeds.

#include <cstdint>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

struct Transfer {
  std::uint32_t source = 0, target = 0;  // ports, any small numbers
  Bytes bytes;
};

/// `feed` must be in an earlier round than `transfer`.
struct Feed {
  std::uint32_t transfer = 0, feed = 0;
};

/// The round of each transfer, from 0. Feeds must not be circular.
std::vector<std::uint32_t> match_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, Bytes unit);

}  // namespace isthmus
