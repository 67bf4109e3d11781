#include "planner/rounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

double real(Bytes bytes) { return static_cast<double>(bytes.value); }

/// Transfers of one pair that travel together.
struct Slot {
  std::uint32_t source = 0, target = 0;  // ports: senders first, then receivers
  std::uint32_t kind = 0;                // of what it feeds
  double bytes = 0;
  std::uint32_t first = 0, last = 0;  // range in `sequence`
  std::uint32_t round = 0;
};

/// The numbers in the order of their keys below `keys`; equal keys keep their order.
template <class Key>
std::vector<std::uint32_t> sorted_by(const std::vector<std::uint32_t>& numbers, std::size_t keys, Key key) {
  std::vector<std::uint32_t> next(keys + 1), result(numbers.size());
  for (const std::uint32_t number : numbers) ++next[key(number) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const std::uint32_t number : numbers) result[next[key(number)]++] = number;
  return result;
}

/// Gives every slot its round, by halving: see rounds.hpp.
class Halving {
 public:
  Halving(std::vector<Slot>& slots, std::size_t ports, std::uint32_t levels)
      : slots_(slots),
        mates_{Numbers(slots.size()), Numbers(slots.size())},
        early_(slots.size()),
        done_(ports),
        rate_(ports),
        half_(ports) {
    for (const Slot& slot : slots) {
      rate_[slot.source] += slot.bytes / static_cast<double>(std::uint64_t{1} << levels);
      rate_[slot.target] += slot.bytes / static_cast<double>(std::uint64_t{1} << levels);
    }
    Numbers order(slots.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Slot &x = slots_[a], &y = slots_[b];
      if (x.kind != y.kind) return x.kind < y.kind;
      return x.bytes != y.bytes ? x.bytes > y.bytes : a < b;
    });
    for (const std::size_t side : {0U, 1U})
      order_[side] = sorted_by(order, ports, [this, side](std::uint32_t slot) { return port(slot, side); });
    halve(0, slots.size(), 0, levels);
  }

 private:
  using Numbers = std::vector<std::uint32_t>;

  std::uint32_t port(std::uint32_t slot, std::size_t side) const {
    return side == 0 ? slots_[slot].source : slots_[slot].target;
  }

  /// The slots [begin, end) of both orders get the 2^levels rounds from `round` on.
  void halve(std::size_t begin, std::size_t end, std::uint32_t round, std::uint32_t levels) {
    if (begin == end) return;
    if (levels == 0) {
      for (std::size_t i = begin; i < end; ++i) {
        Slot& slot = slots_[order_[0][i]];
        slot.round = round;
        done_[slot.source] += slot.bytes;
        done_[slot.target] += slot.bytes;
      }
      return;
    }
    const std::uint32_t middle = round + (1U << (levels - 1));
    for (const std::size_t side : {0U, 1U}) find_mates(side, begin, end);
    divide(begin, end, middle);
    part(0, begin, end);
    const std::size_t cut = part(1, begin, end);
    halve(begin, cut, round, levels - 1);
    halve(cut, end, middle, levels - 1);
  }

  /// Neighbours in the order of a side that share a port become mates: one of them goes early, one late.
  void find_mates(std::size_t side, std::size_t begin, std::size_t end) {
    const Numbers& order = order_[side];
    for (std::size_t i = begin; i < end; ++i) {
      mates_[side][order[i]] = none;
      if (i + 1 == end || port(order[i], side) != port(order[i + 1], side)) continue;
      marry(side, order[i], order[i + 1]);
      ++i;
    }
  }

  void marry(std::size_t side, std::uint32_t a, std::uint32_t b) {
    mates_[side][a] = b;
    mates_[side][b] = a;
    half_[port(a, side)] += slots_[a].bytes / 2;
    half_[port(b, side)] += slots_[b].bytes / 2;
  }

  /// Mates form paths and, as sides alternate along them, cycles of even length. Along each, slots are early
  /// and late in turn; a path is laid so that its ends bring their ports nearest to an even pace.
  void divide(std::size_t begin, std::size_t end, std::uint32_t middle) {
    for (std::size_t i = begin; i < end; ++i) early_[order_[0][i]] = Half::open;
    for (const std::size_t side : {0U, 1U}) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t slot = order_[side][i];
        if (mates_[side][slot] == none && early_[slot] == Half::open) lay_path(slot, side, middle);
      }
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t slot = order_[0][i];
      if (early_[slot] == Half::open) walk(slot, 1, slot % 2 == 0);
      half_[slots_[slot].source] = half_[slots_[slot].target] = 0;
    }
  }

  struct PathEnd {
    std::uint32_t slot = 0;
    std::size_t side = 0;  // the one without a mate
    bool same = true;      // in the same half as the path's first slot
  };

  /// From a slot on, leaving it by `side`: the halves in turn. Ends where there is no mate, or at the start.
  PathEnd walk(std::uint32_t slot, std::size_t side, bool early) {
    const std::uint32_t start = slot;
    const bool first = early;
    while (true) {
      early_[slot] = early ? Half::early : Half::late;
      const std::uint32_t next = mates_[side][slot];
      if (next == none || next == start) return {slot, side, early == first};
      slot = next;
      side = 1 - side;
      early = !early;
    }
  }

  void lay_path(std::uint32_t slot, std::size_t side, std::uint32_t middle) {
    const PathEnd end = walk(slot, 1 - side, true);
    const double one = slots_[slot].bytes, other = slots_[end.slot].bytes;
    const std::uint32_t p = port(slot, side), q = port(end.slot, end.side);
    const double due_p = rate_[p] * middle - done_[p] - half_[p];
    const double due_q = rate_[q] * middle - done_[q] - half_[q];
    // Squares of what is missing at the ends: (due - bytes)^2 where the end is early, due^2 where it is late.
    const double gain_p = one * (2 * due_p - one), gain_q = other * (2 * due_q - other);
    const bool early = end.same ? gain_p + gain_q >= 0 : gain_p >= gain_q;
    if (!early) walk(slot, 1 - side, false);
    if (early) half_[p] += one;
    if (early == end.same) half_[q] += other;
  }

  /// Moves the early slots of a side's order before the late ones and returns where these begin.
  std::size_t part(std::size_t side, std::size_t begin, std::size_t end) {
    late_.clear();
    Numbers& order = order_[side];
    std::size_t to = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (early_[order[i]] == Half::early) {
        order[to++] = order[i];
      } else {
        late_.push_back(order[i]);
      }
    }
    std::copy(late_.begin(), late_.end(), order.begin() + static_cast<std::ptrdiff_t>(to));
    return to;
  }

  enum class Half : char { open, early, late };

  std::vector<Slot>& slots_;
  Numbers order_[2], mates_[2];  // by side: senders, receivers
  std::vector<Half> early_;
  std::vector<double> done_, rate_,
      half_;  // bytes by port: in rounds before, per round, of this step's mates
  Numbers late_;
};

class Ordering {
 public:
  Ordering(const std::vector<Transfer>& transfers, const std::vector<Feed>& feeds, const RoundsWanted& wanted)
      : transfers_(transfers), feeds_(feeds), lag_(wanted.lag), rounds_(transfers.size()) {
    ISTHMUS_ASSERT(std::is_sorted(feeds.begin(), feeds.end(),
                                  [](const Feed& a, const Feed& b) { return a.transfer < b.transfer; }),
                   "{} feeds are not in the order of what they feed", feeds.size());
    for (const Transfer& transfer : transfers)
      senders_ = std::max(senders_, std::max(transfer.source, transfer.target) + 1);
    std::vector<Bytes> loads(std::size_t{2} * senders_);
    for (const Transfer& transfer : transfers) {
      loads[transfer.source] += transfer.bytes;
      loads[senders_ + transfer.target] += transfer.bytes;
    }
    const Bytes busiest = *std::max_element(loads.begin(), loads.end());
    while ((2U << halvings_) <= wanted.rounds && busiest.value >> (halvings_ + 1) >= wanted.smallest.value)
      ++halvings_;
    unit_ = std::max(1.0, real(busiest) / static_cast<double>(1U << halvings_));
  }

  std::vector<std::uint32_t> run() {
    find_kinds();
    find_slots();
    const Halving halving(slots_, std::size_t{2} * senders_, halvings_);
    for (const Slot& slot : slots_)
      for (std::uint32_t s = slot.first; s < slot.last; ++s) rounds_[sequence_[s]] = slot.round;
    for (const Feed& feed : feeds_)
      rounds_[feed.transfer] = std::max(rounds_[feed.transfer], rounds_[feed.feed] + lag_);
    return std::move(rounds_);
  }

 private:
  /// Transfers of one kind pass their bytes on alike, so that what they feed keeps an even pace too.
  void find_kinds() {
    std::vector<std::uint64_t> hashes(transfers_.size());
    fed_.assign(transfers_.size(), 0);
    for (std::size_t f = feeds_.size(); f-- > 0;) {
      const Feed& feed = feeds_[f];
      hashes[feed.feed] += mixed(transfers_[feed.transfer].target + hashes[feed.transfer]);
      fed_[feed.transfer] = 1;
    }
    std::unordered_map<std::uint64_t, std::uint32_t> numbers{{0, 0}};
    kinds_.assign(transfers_.size(), 0);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (hashes[i] != 0)
        kinds_[i] = numbers.try_emplace(hashes[i], static_cast<std::uint32_t>(numbers.size())).first->second;
    }
    kind_count_ = numbers.size();
  }

  static std::uint64_t mixed(std::uint64_t value) {
    value = (value + 1) * 0x9E3779B97F4A7C15ULL;
    return (value ^ (value >> 29U)) * 0xBF58476D1CE4E5B9ULL;
  }

  void find_slots() {
    for (std::uint32_t i = 0; i < transfers_.size(); ++i)
      if (fed_[i] == 0) sequence_.push_back(i);
    if (!feeds_.empty())
      sequence_ = sorted_by(sequence_, kind_count_, [this](std::uint32_t i) { return kinds_[i]; });
    sequence_ = sorted_by(sequence_, senders_, [this](std::uint32_t i) { return transfers_[i].target; });
    sequence_ = sorted_by(sequence_, senders_, [this](std::uint32_t i) { return transfers_[i].source; });
    const auto same_pair = [this](std::uint32_t a, std::uint32_t b) {
      return transfers_[a].source == transfers_[b].source && transfers_[a].target == transfers_[b].target;
    };
    for (std::uint32_t at = 0, end = 0; at < sequence_.size(); at = end) {
      double bytes = 0;
      for (end = at; end < sequence_.size() && same_pair(sequence_[at], sequence_[end]); ++end)
        bytes += real(transfers_[sequence_[end]].bytes);
      cut(at, end, bytes / std::max(1.0, std::round(bytes / unit_)));
    }
  }

  /// Cuts a pair's transfers into slots of about `each` bytes.
  void cut(std::uint32_t begin, std::uint32_t end, double each) {
    double done = 0, wanted = 0;
    for (std::uint32_t at = begin; at < end;) {
      const Transfer& first = transfers_[sequence_[at]];
      Slot slot{first.source, senders_ + first.target, kinds_[sequence_[at]], 0, at, at, 0};
      wanted += each;
      do {
        slot.bytes += real(transfers_[sequence_[slot.last++]].bytes);
      } while (slot.last < end &&
               done + slot.bytes + real(transfers_[sequence_[slot.last]].bytes) / 2 <= wanted);
      done += slot.bytes;
      at = slot.last;
      slots_.push_back(slot);
    }
  }

  const std::vector<Transfer>& transfers_;
  const std::vector<Feed>& feeds_;
  double unit_ = 1;  // bytes
  std::uint32_t lag_, halvings_ = 0, senders_ = 0;
  std::vector<std::uint32_t> kinds_;  // of each transfer
  std::size_t kind_count_ = 1;
  std::vector<std::uint32_t> rounds_;  // of each transfer
  std::vector<char> fed_;
  std::vector<std::uint32_t> sequence_;  // transfers without feeds, pair by pair
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<std::uint32_t> order_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, const RoundsWanted& wanted) {
  if (transfers.empty()) return {};
  return Ordering(transfers, feeds, wanted).run();
}

}  // namespace isthmus
