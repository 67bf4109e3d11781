#include "tests/support/plain_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace isthmus::test {
namespace {

using Numbers = std::vector<std::uint32_t>;

class PlainHalving {
 public:
  PlainHalving(const std::vector<HalvingSlot>& slots, std::uint32_t levels)
      : slots_(slots), rounds_(slots.size()) {
    for (const HalvingSlot& slot : slots)
      for (const std::uint32_t port : {slot.source, slot.target})
        rate_[port] += slot.bytes / static_cast<double>(std::uint64_t{1} << levels);
    Numbers order(slots.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::make_pair(slots[a].kind, -slots[a].bytes) < std::make_pair(slots[b].kind, -slots[b].bytes);
    });
    Numbers by_port[2] = {order, order};
    for (const std::size_t side : {0U, 1U})
      std::stable_sort(by_port[side].begin(), by_port[side].end(),
                       [&](std::uint32_t a, std::uint32_t b) { return port(a, side) < port(b, side); });
    halve(by_port[0], by_port[1], 0, levels);
  }

  Numbers take() { return rounds_; }

 private:
  std::uint32_t port(std::uint32_t slot, std::size_t side) const {
    return side == 0 ? slots_[slot].source : slots_[slot].target;
  }

  void halve(const Numbers& by_source, const Numbers& by_target, std::uint32_t round, std::uint32_t levels) {
    if (levels == 0) {
      for (const std::uint32_t slot : by_source) {
        rounds_[slot] = round;
        for (const std::size_t side : {0U, 1U}) done_[port(slot, side)] += slots_[slot].bytes;
      }
      return;
    }
    mates_[0].clear();
    mates_[1].clear();
    early_.clear();
    half_.clear();
    marry(by_source, 0);
    marry(by_target, 1);
    const std::uint32_t middle = round + (1U << (levels - 1));
    for (const std::size_t side : {0U, 1U})
      for (const std::uint32_t slot : side == 0 ? by_source : by_target)
        if (!mates_[side].contains(slot) && !early_.contains(slot))
          lay(path_from(slot, 1 - side), side, middle);
    for (const std::uint32_t slot : by_source)
      if (!early_.contains(slot)) divide(path_from(slot, 1), slot % 2 == 0);
    Numbers early[2], late[2];
    for (const std::uint32_t slot : by_source) (early_.at(slot) ? early : late)[0].push_back(slot);
    for (const std::uint32_t slot : by_target) (early_.at(slot) ? early : late)[1].push_back(slot);
    halve(early[0], early[1], round, levels - 1);
    halve(late[0], late[1], middle, levels - 1);
  }

  void marry(const Numbers& order, std::size_t side) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      const std::uint32_t a = order[i], b = order[i + 1];
      if (port(a, side) != port(b, side)) continue;
      mates_[side][a] = b;
      mates_[side][b] = a;
      half_[port(a, side)] += slots_[a].bytes / 2;
      half_[port(a, side)] += slots_[b].bytes / 2;
      ++i;
    }
  }

  /// Leaving the first slot by `side`.
  Numbers path_from(std::uint32_t slot, std::size_t side) const {
    Numbers path{slot};
    while (true) {
      const auto next = mates_[side].find(path.back());
      if (next == mates_[side].end() || next->second == slot) return path;
      path.push_back(next->second);
      side = 1 - side;
    }
  }

  void divide(const Numbers& path, bool early) {
    for (std::size_t i = 0; i < path.size(); ++i) early_[path[i]] = early == (i % 2 == 0);
  }

  /// Early or late first, whichever leaves less missing at the ends.
  void lay(const Numbers& path, std::size_t side, std::uint32_t middle) {
    const bool same = path.size() % 2 == 1;
    const std::size_t end_side = same ? 1 - side : side;
    const std::uint32_t p = port(path.front(), side), q = port(path.back(), end_side);
    const double one = slots_[path.front()].bytes, other = slots_[path.back()].bytes;
    const double due_p = rate_[p] * middle - done_[p] - half_[p];
    const double due_q = rate_[q] * middle - done_[q] - half_[q];
    const double gain_p = one * (2 * due_p - one), gain_q = other * (2 * due_q - other);
    const bool early = same ? gain_p + gain_q >= 0 : gain_p >= gain_q;
    divide(path, early);
    if (early) half_[p] += one;
    if (early == same) half_[q] += other;
  }

  const std::vector<HalvingSlot>& slots_;
  Numbers rounds_;
  std::map<std::uint32_t, std::uint32_t> mates_[2];
  std::map<std::uint32_t, bool> early_;
  std::map<std::uint32_t, double> done_, rate_, half_;
};

/// Numbers of what transfers feed, in the order in which they come; none for those that are fed.
std::vector<std::optional<std::uint32_t>> kinds_of(const std::vector<Transfer>& transfers,
                                                   const std::vector<Feed>& feeds) {
  struct Tree {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> fed;  // receiver, kind of what it feeds in turn
  };
  std::vector<Tree> trees(transfers.size());
  std::vector<char> is_fed(transfers.size());
  std::map<std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> shapes{{{}, 0}};
  const auto shape = [&](std::uint32_t transfer) {
    auto& fed = trees[transfer].fed;
    std::sort(fed.begin(), fed.end());
    return shapes.try_emplace(fed, static_cast<std::uint32_t>(shapes.size())).first->second;
  };
  for (std::size_t f = feeds.size(); f-- > 0;) {
    trees[feeds[f].feed].fed.push_back({transfers[feeds[f].transfer].target, shape(feeds[f].transfer)});
    is_fed[feeds[f].transfer] = 1;
  }
  std::map<std::uint32_t, std::uint32_t> numbers{{0, 0}};
  std::vector<std::optional<std::uint32_t>> kinds;
  for (std::uint32_t i = 0; i < transfers.size(); ++i) {
    const std::uint32_t number =
        numbers.try_emplace(shape(i), static_cast<std::uint32_t>(numbers.size())).first->second;
    kinds.push_back(is_fed[i] != 0 ? std::nullopt : std::optional(number));
  }
  return kinds;
}

}  // namespace

std::vector<std::uint32_t> plain_halving(const std::vector<HalvingSlot>& slots, std::uint32_t levels) {
  return PlainHalving(slots, levels).take();
}

std::vector<std::uint32_t> plain_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, const RoundsWanted& wanted) {
  std::map<std::uint32_t, std::int64_t> sent, received;
  std::uint32_t ports = 0;
  std::int64_t busiest = 0;
  for (const Transfer& transfer : transfers) {
    busiest = std::max({busiest, sent[transfer.source] += transfer.bytes.value,
                        received[transfer.target] += transfer.bytes.value});
    ports = std::max({ports, transfer.source + 1, transfer.target + 1});
  }
  std::uint32_t levels = 0;
  while ((2U << levels) <= wanted.rounds && busiest >> (levels + 1) >= wanted.smallest.value) ++levels;
  const double unit = std::max(1.0, static_cast<double>(busiest) / static_cast<double>(1U << levels));
  const std::uint32_t lag = std::max(wanted.lag, std::min((1U << levels) / 16, wanted.most_lag));
  const auto kinds = kinds_of(transfers, feeds);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Numbers> pairs;
  for (std::uint32_t i = 0; i < transfers.size(); ++i)
    if (kinds[i]) pairs[{transfers[i].source, transfers[i].target}].push_back(i);
  std::vector<HalvingSlot> slots;
  std::vector<Numbers> members;
  for (auto& [pair, list] : pairs) {
    std::stable_sort(list.begin(), list.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return *kinds[a] < *kinds[b]; });
    double all = 0, done = 0;
    for (const std::uint32_t i : list) all += static_cast<double>(transfers[i].bytes.value);
    const double each = all / std::max(1.0, std::round(all / unit));
    double goal = 0;
    for (const std::uint32_t i : list) {
      const auto bytes = static_cast<double>(transfers[i].bytes.value);
      if (i == list.front() || done + bytes / 2 > goal) {
        slots.push_back({pair.first, ports + pair.second, *kinds[i], 0});
        members.emplace_back();
        goal += each;
      }
      slots.back().bytes += bytes;
      members.back().push_back(i);
      done += bytes;
    }
  }
  const Numbers of_slot = plain_halving(slots, levels);
  Numbers rounds(transfers.size());
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    for (const std::uint32_t i : members[slot]) rounds[i] = of_slot[slot];
  for (const Feed& feed : feeds)
    rounds[feed.transfer] = std::max(rounds[feed.transfer], rounds[feed.feed] + lag);
  if (!feeds.empty() || transfers.empty() || wanted.halved == 0 ||
      unit / 2 < static_cast<double>(wanted.smallest.value))
    return rounds;
  const std::uint32_t count = *std::max_element(rounds.begin(), rounds.end()) + 1;
  std::vector<Transfer> last;
  for (std::uint32_t i = 0; i < transfers.size(); ++i)
    if (rounds[i] >= count - std::min(count, wanted.halved)) last.push_back(transfers[i]);
  const Numbers finer = plain_rounds(last, {}, {2 * wanted.halved, wanted.smallest});
  const bool fine = *std::max_element(finer.begin(), finer.end()) >= wanted.halved;
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < transfers.size() && fine && count >= 4 * wanted.halved; ++i)
    if (rounds[i] >= count - wanted.halved) rounds[i] = count - wanted.halved + finer[next++];
  return rounds;
}

}  // namespace isthmus::test
