#include "planner/halving.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "planner/large_arrays.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t no_mate = 0xFFFFFFFF;

enum class Half : std::uint8_t { open, early, late };

class Halving {
 public:
  Halving(const std::vector<HalvingSlot>& slots, std::size_t ports, std::uint32_t levels)
      : items_(large_vector<Item>(slots.size())),
        by_target_(large_vector<std::uint32_t>(slots.size())),
        mates_(large_vector<Mates>(slots.size())),
        halves_(slots.size()),
        moved_(large_vector<std::uint32_t>(slots.size())),
        spare_items_(large_vector<Item>(slots.size())),
        spare_(large_vector<std::uint32_t>(slots.size())),
        rounds_(large_vector<std::uint32_t>(slots.size())),
        done_(ports),
        rate_(ports),
        half_(ports) {
    for (const HalvingSlot& slot : slots) {
      rate_[slot.source] += slot.bytes / static_cast<double>(std::uint64_t{1} << levels);
      rate_[slot.target] += slot.bytes / static_cast<double>(std::uint64_t{1} << levels);
    }
    place(slots, ports);
    halve(0, static_cast<std::uint32_t>(slots.size()), 0, levels);
  }

  std::vector<std::uint32_t> take() { return std::move(rounds_); }

 private:
  struct Item {
    std::uint32_t source = 0, target = 0;
    std::uint32_t slot = 0;
    double bytes = 0;
  };
  /// On the sender's side, on the receiver's side.
  using Mates = std::array<std::uint32_t, 2>;

  /// Items by sender, `by_target_` by receiver; along a port by kind, then by falling size.
  void place(const std::vector<HalvingSlot>& slots, std::size_t ports);

  std::uint32_t port(std::uint32_t item, std::size_t side) const {
    return side == 0 ? items_[item].source : items_[item].target;
  }

  /// The items [begin, end) get the 2^levels rounds from `round` on.
  void halve(std::uint32_t begin, std::uint32_t end, std::uint32_t round, std::uint32_t levels) {
    if (begin == end) return;
    if (levels == 0) {
      for (std::uint32_t i = begin; i < end; ++i) {
        const Item& item = items_[i];
        rounds_[item.slot] = round;
        done_[item.source] += item.bytes;
        done_[item.target] += item.bytes;
      }
      return;
    }
    const std::uint32_t middle = round + (1U << (levels - 1));
    find_mates(begin, end);
    divide(begin, end, middle);
    const std::uint32_t cut = part(begin, end);
    halve(begin, cut, round, levels - 1);
    halve(cut, end, middle, levels - 1);
  }

  /// Neighbours in the order of a side that share a port become mates: one of them goes early, one late.
  void find_mates(std::uint32_t begin, std::uint32_t end) {
    std::fill(halves_.begin() + begin, halves_.begin() + end, Half::open);
    single_.clear();
    for (std::uint32_t i = begin; i < end;) i = marry<0>(i, end, [](std::uint32_t at) { return at; });
    singles_of_senders_ = single_.size();
    for (std::uint32_t i = begin; i < end;)
      i = marry<1>(i, end, [this](std::uint32_t at) { return by_target_[at]; });
  }

  /// The items of the port that stands at `at` in the order of a side, two by two; returns where the next
  /// port's begin. Sums stay in a register: a port's items follow each other, and no other run is its own.
  template <std::size_t side, class ItemAt>
  std::uint32_t marry(std::uint32_t at, std::uint32_t end, ItemAt item_at) {
    std::uint32_t a = item_at(at);
    const std::uint32_t p = port(a, side);
    double half = 0;
    while (true) {
      const std::uint32_t b = ++at < end ? item_at(at) : no_mate;
      if (b == no_mate || port(b, side) != p) {
        mates_[a][side] = no_mate;
        single_.push_back(a);
        break;
      }
      mates_[a][side] = b;
      mates_[b][side] = a;
      half += items_[a].bytes / 2;
      half += items_[b].bytes / 2;
      if (++at == end) break;
      a = item_at(at);
      if (port(a, side) != p) break;
    }
    half_[p] = half;
    return at;
  }

  /// Mates form paths and, as sides alternate along them, cycles of even length. Along each, items are early
  /// and late in turn; a path is laid so that its ends bring their ports nearest to an even pace.
  void divide(std::uint32_t begin, std::uint32_t end, std::uint32_t middle) {
    for (std::size_t s = 0; s < single_.size(); ++s)
      if (halves_[single_[s]] == Half::open) lay_path(single_[s], s < singles_of_senders_ ? 0 : 1, middle);
    for (std::uint32_t i = begin; i < end; ++i)
      if (halves_[i] == Half::open) walk(i, 1, items_[i].slot % 2 == 0);
  }

  /// From an item on, leaving it by `side`: the halves in turn, along `path_`. Ends where there is no mate,
  /// or at the start. Returns the side that the last item has no mate on.
  std::size_t walk(std::uint32_t item, std::size_t side, bool early) {
    const std::uint32_t start = item;
    path_.clear();
    while (true) {
      halves_[item] = early ? Half::early : Half::late;
      path_.push_back(item);
      const std::uint32_t next = mates_[item][side];
      if (next == no_mate || next == start) return side;
      item = next;
      side = 1 - side;
      early = !early;
    }
  }

  void lay_path(std::uint32_t item, std::size_t side, std::uint32_t middle) {
    const std::size_t end_side = walk(item, 1 - side, true);
    const std::uint32_t last = path_.back();
    const bool same = path_.size() % 2 == 1;  // both ends in one half
    const double one = items_[item].bytes, other = items_[last].bytes;
    const std::uint32_t p = port(item, side), q = port(last, end_side);
    const double due_p = rate_[p] * middle - done_[p] - half_[p];
    const double due_q = rate_[q] * middle - done_[q] - half_[q];
    // Squares of what is missing at the ends: (due - bytes)^2 where the end is early, due^2 where it is late.
    const double gain_p = one * (2 * due_p - one), gain_q = other * (2 * due_q - other);
    const bool early = same ? gain_p + gain_q >= 0 : gain_p >= gain_q;
    if (!early) {
      for (const std::uint32_t each : path_)
        halves_[each] = halves_[each] == Half::early ? Half::late : Half::early;
    }
    if (early) half_[p] += one;
    if (early == same) half_[q] += other;
  }

  /// Moves the early items before the late ones, in both orders, and returns where these begin. Without
  /// branches, which would be foreseen wrongly every second time.
  std::uint32_t part(std::uint32_t begin, std::uint32_t end) {
    std::uint32_t cut = begin, late = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      const bool early = halves_[i] == Half::early;
      const Item item = items_[i];
      moved_[i] = early ? cut : late;
      items_[cut] = item;
      spare_items_[late] = item;
      cut += early ? 1 : 0;
      late += early ? 0 : 1;
    }
    std::copy_n(spare_items_.begin(), late, items_.begin() + cut);
    std::uint32_t to = begin;
    late = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t item = by_target_[i];
      const bool early = halves_[item] == Half::early;
      by_target_[to] = moved_[item];
      spare_[late] = cut + moved_[item];
      to += early ? 1 : 0;
      late += early ? 0 : 1;
    }
    std::copy_n(spare_.begin(), late, by_target_.begin() + cut);
    return cut;
  }

  std::vector<Item> items_;
  std::vector<std::uint32_t> by_target_;  // items
  std::vector<Mates> mates_;              // by item, as all below
  std::vector<Half> halves_;
  std::vector<std::uint32_t> moved_;  // where an item goes: from the start, or from the late items'
  std::vector<Item> spare_items_;
  std::vector<std::uint32_t> spare_, path_;
  std::vector<std::uint32_t> single_;   // items without a mate on the senders' side, then on the receivers'
  std::size_t singles_of_senders_ = 0;  // so many of them
  std::vector<std::uint32_t> rounds_;   // by slot
  std::vector<double> done_, rate_, half_;  // bytes by port: in rounds before, per round, of this division
};

/// A slot's place among all: by kind, then by falling size, then by number.
struct SlotRank {
  std::uint64_t smaller = 0;  // than the largest, by so many bytes
  std::uint32_t kind = 0, slot = 0;
};

constexpr std::uint64_t highest_digit = 0x7FF;

/// One pass of a radix sort.
template <class Digit>
void sort_by_digit(std::vector<SlotRank>& ranks, std::vector<SlotRank>& spare, Digit digit) {
  std::vector<std::uint32_t> next(highest_digit + 2);
  for (const SlotRank& rank : ranks) ++next[digit(rank) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const SlotRank& rank : ranks) spare[next[digit(rank)]++] = rank;
  ranks.swap(spare);
}

std::vector<SlotRank> ranked(const std::vector<HalvingSlot>& slots) {
  double largest = 0;
  std::uint32_t kinds = 0;
  for (const HalvingSlot& slot : slots) {
    largest = std::max(largest, slot.bytes);
    kinds = std::max(kinds, slot.kind);
  }
  std::uint64_t most = 0;
  std::vector<SlotRank> ranks, spare = large_vector<SlotRank>(slots.size());
  reserve_large(ranks, slots.size());
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    ranks.push_back({static_cast<std::uint64_t>(largest - slots[s].bytes), slots[s].kind, s});
    most = std::max(most, ranks.back().smaller);
  }
  for (std::uint32_t shift = 0; most >> shift > 0; shift += 11)
    sort_by_digit(ranks, spare, [shift](const SlotRank& rank) {
      return static_cast<std::size_t>(rank.smaller >> shift & highest_digit);
    });
  for (std::uint32_t shift = 0; kinds >> shift > 0; shift += 11)
    sort_by_digit(ranks, spare, [shift](const SlotRank& rank) {
      return static_cast<std::size_t>(rank.kind >> shift & highest_digit);
    });
  return ranks;
}

void Halving::place(const std::vector<HalvingSlot>& slots, std::size_t ports) {
  const std::vector<SlotRank> order = ranked(slots);
  std::vector<std::uint32_t> next(ports + 1);
  const auto begins = [&](const auto& port_of) {
    std::fill(next.begin(), next.end(), 0);
    for (const HalvingSlot& slot : slots) ++next[port_of(slot) + std::size_t{1}];
    std::partial_sum(next.begin(), next.end(), next.begin());
  };
  begins([](const HalvingSlot& slot) { return slot.source; });
  for (const SlotRank& rank : order) {
    const HalvingSlot& slot = slots[rank.slot];
    moved_[rank.slot] = next[slot.source]++;
    items_[moved_[rank.slot]] = {slot.source, slot.target, rank.slot, slot.bytes};
  }
  begins([](const HalvingSlot& slot) { return slot.target; });
  for (const SlotRank& rank : order) by_target_[next[slots[rank.slot].target]++] = moved_[rank.slot];
}

}  // namespace

std::vector<std::uint32_t> rounds_by_halving(const std::vector<HalvingSlot>& slots, std::size_t ports,
                                             std::uint32_t levels) {
  return Halving(slots, ports, levels).take();
}

}  // namespace isthmus
