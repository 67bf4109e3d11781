#include "model/membership_seats.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/assignment.hpp"

namespace isthmus {
namespace {

/// Where a side's ranks sit: seat by order of appearance of its host, and the GPU's number there.
struct Seat {
  std::size_t number = 0, local = 0;
};

struct SideSeats {
  std::vector<Seat> of_rank;  // from the side's first rank on
  std::size_t count = 0;
};

SideSeats seats_of(const Refit& refit, std::size_t first, std::size_t count) {
  SideSeats seats;
  std::map<std::uint32_t, std::size_t> numbers;
  for (std::size_t rank = first; rank < first + count; ++rank) {
    const GpuId gpu = refit.gpu_of_rank[rank];
    const HostId host = refit.fabric.host_of(gpu);
    const std::size_t number = numbers.emplace(host.value, numbers.size()).first->second;
    seats.of_rank.push_back({number, gpu.index() - refit.fabric.gpu_at(host, 0).index()});
  }
  seats.count = numbers.size();
  return seats;
}

/// A shard of a tensor, and where it is.
struct SeatedShard {
  Seat seat;
  Region region;
};

/// By local GPU.
std::map<std::size_t, std::vector<SeatedShard>> shards_by_gpu(const Layout& layout, std::size_t base,
                                                              const SideSeats& seats) {
  std::map<std::size_t, std::vector<SeatedShard>> shards;
  const std::vector<Region> regions = layout.regions();
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const Seat seat = seats.of_rank[base + layout.mesh.ranks[i].index()];
    shards[seat.local].push_back({seat, regions[i]});
  }
  return shards;
}

void add_common(const Layout& before, std::size_t before_base, const SideSeats& before_seats,
                const Layout& after, std::size_t after_base, const SideSeats& after_seats, std::int64_t times,
                HeldTable& held) {
  auto old = shards_by_gpu(before, before_base, before_seats);
  for (const auto& [local, needed] : shards_by_gpu(after, after_base, after_seats)) {
    for (const SeatedShard& want : needed) {
      for (const SeatedShard& have : old[local])
        held[want.seat.number][have.seat.number] +=
            times * after.bytes(intersect(want.region, have.region)).value;
    }
  }
}

HeldTable held_on(bool train, const Refit& before, const Refit& after) {
  const std::size_t old_first = train ? 0 : before.train_ranks, new_first = train ? 0 : after.train_ranks;
  const SideSeats old = seats_of(before, old_first, train ? before.train_ranks : before.generate_ranks);
  const SideSeats fresh = seats_of(after, new_first, train ? after.train_ranks : after.generate_ranks);
  HeldTable held(fresh.count, std::vector<std::int64_t>(old.count));
  using Kind = std::tuple<std::uint32_t, Rank, std::uint32_t, Rank>;
  std::map<Kind, std::int64_t> times;  // tensors that are alike on this side
  for (std::size_t t = 0; t < after.tensors.size(); ++t) {
    const RefitEntry &was = before.tensors[t], &is = after.tensors[t];
    ++times[{was.geometry, train ? was.source_base : was.target_base, is.geometry,
             train ? is.source_base : is.target_base}];
  }
  for (const auto& [kind, count] : times) {
    const auto& [was, was_base, is, is_base] = kind;
    const Geometry &from = before.geometries[was], &to = after.geometries[is];
    add_common(train ? from.source : from.target, was_base.index() - old_first, old,
               train ? to.source : to.target, is_base.index() - new_first, fresh, count, held);
  }
  return held;
}

}  // namespace

HeldBytes held_bytes(const Refit& before, const Refit& after) {
  return {held_on(true, before, after), held_on(false, before, after)};
}

std::vector<int> seats_of_whole_units(std::size_t seats, std::size_t unit, const std::vector<int>& now,
                                      const std::vector<int>& leave) {
  std::vector<int> seated(seats, empty_seat);
  std::vector<std::size_t> later;  // first seats of replicas whose places are no more
  const auto sit = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = 0; i < unit; ++i) seated[to + i] = now[from + i];
  };
  for (std::size_t first = 0; first + unit <= now.size(); first += unit) {
    const auto begin = now.begin() + static_cast<std::ptrdiff_t>(first);
    const bool whole = std::none_of(begin, begin + static_cast<std::ptrdiff_t>(unit), [&](int host) {
      return std::find(leave.begin(), leave.end(), host) != leave.end();
    });
    if (!whole) continue;
    if (first + unit <= seats) {
      sit(first, first);
    } else {
      later.push_back(first);
    }
  }
  std::size_t next = 0;
  for (std::size_t to = 0; to + unit <= seats && next < later.size(); to += unit)
    if (seated[to] == empty_seat) sit(later[next++], to);
  return seated;
}

std::vector<int> best_seats(const HeldTable& held, const std::vector<int>& now, const std::vector<int>& hosts,
                            const std::vector<int>& empty, std::vector<int> kept) {
  kept.resize(held.size(), empty_seat);
  std::vector<std::size_t> seats;
  std::vector<int> others;
  for (std::size_t s = 0; s < kept.size(); ++s)
    if (kept[s] == empty_seat) seats.push_back(s);
  for (const int host : hosts)
    if (std::find(kept.begin(), kept.end(), host) == kept.end()) others.push_back(host);
  const auto weight = static_cast<std::int64_t>(held.size()) + 1;
  HeldTable cost(seats.size(), std::vector<std::int64_t>(others.size()));
  for (std::size_t h = 0; h < others.size(); ++h) {
    if (std::find(empty.begin(), empty.end(), others[h]) != empty.end()) continue;
    const auto seat = std::find(now.begin(), now.end(), others[h]);
    if (seat == now.end()) continue;  // it joins
    const auto old = to_size(seat - now.begin());
    for (std::size_t s = 0; s < seats.size(); ++s)
      cost[s][h] = -(weight * held[seats[s]][old] + (seats[s] == old ? 1 : 0));
  }
  const std::vector<std::size_t> columns = least_cost_assignment(cost);
  for (std::size_t s = 0; s < seats.size(); ++s) kept[seats[s]] = others[columns[s]];
  return kept;
}

}  // namespace isthmus
