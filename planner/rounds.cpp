#include "planner/rounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/halving.hpp"
#include "planner/large_arrays.hpp"

namespace isthmus {
namespace {

double real(Bytes bytes) { return static_cast<double>(bytes.value); }

/// Numbers hashes in the order in which they come; 0 is 0.
class Numbering {
 public:
  std::uint32_t of(std::uint64_t hash) {
    if (hash == 0) return 0;
    std::size_t at = place(hash);
    if (table_[at].hash == 0) {
      if (2 * count_ >= table_.size()) {
        grow();
        at = place(hash);
      }
      table_[at] = {hash, count_++};
    }
    return table_[at].number;
  }

 private:
  struct Numbered {
    std::uint64_t hash = 0;
    std::uint32_t number = 0;
  };

  std::size_t place(std::uint64_t hash) const {
    std::size_t at = (hash ^ hash >> 32U) & (table_.size() - 1);
    while (table_[at].hash != 0 && table_[at].hash != hash) at = (at + 1) & (table_.size() - 1);
    return at;
  }

  void grow() {
    std::vector<Numbered> old(2 * table_.size());
    old.swap(table_);
    for (const Numbered& each : old)
      if (each.hash != 0) table_[place(each.hash)] = each;
  }

  std::vector<Numbered> table_{1024};
  std::uint32_t count_ = 1;
};

class Ordering {
 public:
  Ordering(const std::vector<Transfer>& transfers, const std::vector<Feed>& feeds, const RoundsWanted& wanted)
      : transfers_(transfers), feeds_(feeds) {
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
    lag_ = std::max(wanted.lag, std::min(wanted.most_lag, (1U << halvings_) / rounds_of_lag));
    unit_ = std::max(1.0, real(busiest) / static_cast<double>(1U << halvings_));
  }

  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> rounds = large_vector<std::uint32_t>(transfers_.size());
    if (halvings_ > 0) {  // else there is one round
      if (!feeds_.empty()) find_kinds();
      find_slots();
      const std::vector<std::uint32_t> of_slot =
          rounds_by_halving(slots_, std::size_t{2} * senders_, halvings_);
      for (std::size_t slot = 0; slot < slots_.size(); ++slot)
        for (std::uint32_t at = begins_[slot]; at < begins_[slot + 1]; ++at)
          rounds[sequence_[at]] = of_slot[slot];
    }
    for (const Feed& feed : feeds_)
      rounds[feed.transfer] = std::max(rounds[feed.transfer], rounds[feed.feed] + lag_);
    return rounds;
  }

  double unit() const { return unit_; }

 private:
  static constexpr std::uint64_t fed = ~std::uint64_t{0};  // in place of a kind
  static constexpr std::uint32_t rounds_of_lag = 16;
  static constexpr std::size_t few_of_ports = 16;  // fewer than 1 in so many are sorted, not counted

  /// Transfers of one kind pass their bytes on alike, so that what they feed keeps an even pace too.
  void find_kinds() {
    kinds_ = large_vector<std::uint64_t>(transfers_.size());
    std::vector<char> is_fed(transfers_.size());
    for (std::size_t f = feeds_.size(); f-- > 0;) {
      const Feed& feed = feeds_[f];
      kinds_[feed.feed] += mixed(transfers_[feed.transfer].target + kinds_[feed.transfer]);
      is_fed[feed.transfer] = 1;
    }
    Numbering numbers;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const std::uint32_t number = numbers.of(kinds_[i]);
      kinds_[i] = is_fed[i] != 0 ? fed : number;
    }
  }

  static std::uint64_t mixed(std::uint64_t value) {
    value = (value + 1) * 0x9E3779B97F4A7C15ULL;
    return (value ^ (value >> 29U)) * 0xBF58476D1CE4E5B9ULL;
  }

  bool is_fed(std::size_t transfer) const { return !kinds_.empty() && kinds_[transfer] == fed; }

  struct Sent {
    std::uint32_t target = 0, kind = 0, transfer = 0;
    double bytes = 0;
    friend bool operator<(const Sent& a, const Sent& b) {
      return std::tie(a.target, a.kind, a.transfer) < std::tie(b.target, b.kind, b.transfer);
    }
  };

  /// Sender by sender, so that a sender's transfers stay within the processor's caches.
  void find_slots() {
    std::vector<std::uint32_t> begins(senders_ + std::size_t{1});
    for (std::size_t i = 0; i < transfers_.size(); ++i)
      if (!is_fed(i)) ++begins[transfers_[i].source + std::size_t{1}];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    sequence_ = large_vector<std::uint32_t>(begins.back());
    std::vector<std::uint32_t> next = begins;
    for (std::uint32_t i = 0; i < transfers_.size(); ++i)
      if (!is_fed(i)) sequence_[next[transfers_[i].source]++] = i;
    reserve_large(slots_, sequence_.size());
    reserve_large(begins_, sequence_.size() + 1);
    for (std::uint32_t source = 0; source < senders_; ++source) {
      if (begins[source] == begins[source + 1]) continue;
      sort_sent(begins[source], begins[source + 1]);
      cut_sent(source, begins[source]);
    }
    begins_.push_back(static_cast<std::uint32_t>(sequence_.size()));
  }

  /// One sender's transfers, by receiver, kind and number.
  void sort_sent(std::uint32_t begin, std::uint32_t end) {
    unsorted_.resize(end - begin);
    for (std::uint32_t at = begin; at < end; ++at) {
      const std::uint32_t i = sequence_[at];
      const auto kind = static_cast<std::uint32_t>(kinds_.empty() ? 0 : kinds_[i]);
      unsorted_[at - begin] = {transfers_[i].target, kind, i, real(transfers_[i].bytes)};
    }
    if (unsorted_.size() < senders_ / few_of_ports) {
      sent_ = unsorted_;
      std::sort(sent_.begin(), sent_.end());
      return;
    }
    receivers_.assign(senders_ + std::size_t{1}, 0);
    for (const Sent& each : unsorted_) ++receivers_[each.target + std::size_t{1}];
    std::partial_sum(receivers_.begin(), receivers_.end(), receivers_.begin());
    sent_.resize(unsorted_.size());
    for (const Sent& each : unsorted_) sent_[receivers_[each.target]++] = each;
  }

  void cut_sent(std::uint32_t source, std::uint32_t first) {
    for (std::size_t at = 0, end = 0; at < sent_.size(); at = end) {
      double bytes = 0;
      for (end = at; end < sent_.size() && sent_[at].target == sent_[end].target; ++end)
        bytes += sent_[end].bytes;
      const auto pair = std::span(sent_).subspan(at, end - at);
      if (!std::is_sorted(pair.begin(), pair.end())) std::sort(pair.begin(), pair.end());
      cut(pair, source, bytes / std::max(1.0, std::round(bytes / unit_)),
          first + static_cast<std::uint32_t>(at));
    }
  }

  /// Cuts a pair's transfers into slots of about `each` bytes. They stand in the sequence from `place` on.
  void cut(std::span<const Sent> pair, std::uint32_t source, double each, std::uint32_t place) {
    double done = 0, wanted = 0;
    for (std::size_t at = 0; at < pair.size();) {
      HalvingSlot slot{source, senders_ + pair[at].target, pair[at].kind, 0};
      begins_.push_back(place);
      wanted += each;
      do {
        slot.bytes += pair[at].bytes;
        sequence_[place++] = pair[at++].transfer;
      } while (at < pair.size() && done + slot.bytes + pair[at].bytes / 2 <= wanted);
      done += slot.bytes;
      slots_.push_back(slot);
    }
  }

  const std::vector<Transfer>& transfers_;
  const std::vector<Feed>& feeds_;
  double unit_ = 1;  // bytes
  std::uint32_t lag_ = 1, halvings_ = 0, senders_ = 0;
  std::vector<std::uint64_t> kinds_;     // of each transfer, where there are feeds
  std::vector<std::uint32_t> sequence_;  // transfers without feeds, pair by pair
  std::vector<HalvingSlot> slots_;       // transfers of one pair that travel together
  std::vector<std::uint32_t> begins_;    // in the sequence, of each slot; and one past the last
  std::vector<Sent> unsorted_, sent_;    // by one sender
  std::vector<std::uint32_t> receivers_;
};

/// Orders what is in the last rounds anew, in twice as many, if those are not too small.
void halve_last(const std::vector<Transfer>& transfers, const RoundsWanted& wanted,
                std::vector<std::uint32_t>& rounds) {
  const std::uint32_t count = 1 + *std::max_element(rounds.begin(), rounds.end());
  if (count < 4 * wanted.halved) return;
  std::vector<std::uint32_t> places;
  std::vector<Transfer> last;
  for (std::uint32_t i = 0; i < transfers.size(); ++i) {
    if (rounds[i] + wanted.halved < count) continue;
    places.push_back(i);
    last.push_back(transfers[i]);
  }
  const std::vector<Feed> none;
  const std::vector<std::uint32_t> again =
      Ordering(last, none, {2 * wanted.halved, wanted.smallest, wanted.lag}).run();
  if (*std::max_element(again.begin(), again.end()) < wanted.halved) return;
  for (std::size_t i = 0; i < places.size(); ++i) rounds[places[i]] = count - wanted.halved + again[i];
}

}  // namespace

std::vector<std::uint32_t> order_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, const RoundsWanted& wanted) {
  if (transfers.empty()) return {};
  Ordering ordering(transfers, feeds, wanted);
  std::vector<std::uint32_t> rounds = ordering.run();
  if (feeds.empty() && wanted.halved > 0 && ordering.unit() >= 2 * real(wanted.smallest))
    halve_last(transfers, wanted, rounds);
  return rounds;
}

}  // namespace isthmus
