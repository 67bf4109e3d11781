#pragma once
// Who sits where after a change of membership. A seat is a place of a host in a side's rank order; its GPUs
// need the shards of the ranks there, and GPU g of a host that stays holds what the ranks on it had before.
// held[new seat][old seat] = bytes, over all tensors of the side and all g, that are in both.
// Invariant: best_seats gives every seat that is not given a host of its own, loses the fewest bytes that any
// such choice loses, and among those moves the fewest hosts from the seat of the same number. Whole replicas
// that stay together cost no byte more: each position of a replica has as many holders left as before.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

using HeldTable = std::vector<std::vector<std::int64_t>>;

struct HeldBytes {
  HeldTable train, generate;
};

/// Requires refits of one model and of the same number of GPUs per host.
HeldBytes held_bytes(const Refit& before, const Refit& after);

/// A seat that nobody has yet.
inline constexpr int empty_seat = -1;

/// Whole replicas of `unit` hosts stay together: those of `now` that nobody leaves keep their seats, or get
/// the first free ones of other replicas where theirs are no more. The other seats are empty.
std::vector<int> seats_of_whole_units(std::size_t seats, std::size_t unit, const std::vector<int>& now,
                                      const std::vector<int>& leave);

/// The host of each seat. `kept`: seats that are given; `now`: hosts of the old seats; `hosts`: who may sit;
/// those in `empty` hold nothing.
std::vector<int> best_seats(const HeldTable& held, const std::vector<int>& now, const std::vector<int>& hosts,
                            const std::vector<int>& empty, std::vector<int> kept = {});

}  // namespace isthmus
