#include "planner/rounds.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

struct Pair {
  std::uint32_t source = 0, target = 0;
  std::vector<std::uint32_t> ready;  // transfers whose feeds are placed, in order
  std::size_t head = 0;
  Bytes ready_bytes, remaining;  // remaining: ready or not
};

/// A pair seen from one of its ports.
struct Partner {
  std::uint32_t pair, port;
};

/// One direction of a port. Ports are numbered: senders first, then receivers.
struct Port {
  std::vector<Partner> partners;  // pairs with bytes left
  Bytes remaining;
  Bytes budget;  // what it may still move in the present round
};

class Matcher {
 public:
  Matcher(const std::vector<Transfer>& transfers, const std::vector<Feed>& feeds, Bytes unit)
      : transfers_(transfers),
        unit_(unit),
        round_of_(transfers.size(), 0),
        pair_of_(transfers.size()),
        waiting_(transfers.size(), 0) {
    link_feeds(feeds);
    for (const Transfer& transfer : transfers) {
      first_receiver_ = std::max(first_receiver_, std::max(transfer.source, transfer.target) + 1);
    }
    ports_.resize(std::size_t{2} * first_receiver_);
    for (std::uint32_t i = 0; i < transfers.size(); ++i) add(i);
  }

  std::vector<std::uint32_t> run() {
    std::size_t left = transfers_.size();
    for (std::uint32_t round = 0; left > 0; ++round) {
      std::size_t placed = match(round, false);
      if (placed == 0) placed = match(round, true);
      ISTHMUS_ASSERT(placed > 0, "{} transfers wait for each other", left);
      left -= placed;
      release();
    }
    return std::move(round_of_);
  }

 private:
  void link_feeds(const std::vector<Feed>& feeds) {
    first_fed_.assign(transfers_.size() + 1, 0);
    for (const Feed& feed : feeds) {
      ++first_fed_[feed.feed + 1];
      ++waiting_[feed.transfer];
    }
    for (std::size_t i = 0; i < transfers_.size(); ++i) first_fed_[i + 1] += first_fed_[i];
    fed_.resize(feeds.size());
    depth_.resize(transfers_.size());
    std::vector<std::uint32_t> next(first_fed_.begin(), first_fed_.end() - 1);
    for (const Feed& feed : feeds) fed_[next[feed.feed]++] = feed.transfer;
    for (std::uint32_t i = static_cast<std::uint32_t>(transfers_.size()); i-- > 0;) {
      for (std::uint32_t f = first_fed_[i]; f < first_fed_[i + 1]; ++f) {
        depth_[i] = std::max(depth_[i], depth_[fed_[f]] + 1);
      }
    }
  }

  void add(std::uint32_t i) {
    const Transfer& transfer = transfers_[i];
    const std::uint64_t key = (std::uint64_t{transfer.source} << 32U) | transfer.target;
    const auto [known, added] = pair_index_.emplace(key, static_cast<std::uint32_t>(pairs_.size()));
    if (added) {
      pairs_.push_back({transfer.source, first_receiver_ + transfer.target, {}, 0, {}, {}});
      ports_[pairs_.back().source].partners.push_back({known->second, pairs_.back().target});
      ports_[pairs_.back().target].partners.push_back({known->second, pairs_.back().source});
    }
    Pair& pair = pairs_[known->second];
    pair_of_[i] = known->second;
    pair.remaining += transfer.bytes;
    ports_[pair.source].remaining += transfer.bytes;
    ports_[pair.target].remaining += transfer.bytes;
    if (waiting_[i] == 0) make_ready(i);
  }

  void make_ready(std::uint32_t i) {
    Pair& pair = pairs_[pair_of_[i]];
    pair.ready.push_back(i);
    pair.ready_bytes += transfers_[i].bytes;
  }

  /// One round; with `partial`, a pair may move less than a unit although more of it will come. The ports
  /// with the most bytes left choose first, senders and receivers alike.
  std::size_t match(std::uint32_t round, bool partial) {
    order_.clear();
    for (std::uint32_t p = 0; p < ports_.size(); ++p) {
      ports_[p].budget = unit_;
      if (!ports_[p].partners.empty()) order_.emplace_back(-ports_[p].remaining.value, p);
    }
    std::sort(order_.begin(), order_.end());
    std::size_t placed = 0;
    for (const auto& [remaining, p] : order_) {
      while (const std::size_t more = serve(p, round, partial)) placed += more;
    }
    return placed;
  }

  /// The port takes, among its pairs that fit, the one whose other port has the most left. Whole units go to
  /// ports that are still free in this round; remainders of pairs share a round up to one unit for each port.
  std::size_t serve(std::uint32_t p, std::uint32_t round, bool partial) {
    const Bytes budget = ports_[p].budget;
    if (budget <= Bytes{0}) return 0;
    std::uint32_t best = none, deepest = 0;
    Bytes most{-1};
    for (const Partner& partner : ports_[p].partners) {
      const Port& other = ports_[partner.port];
      const Pair& pair = pairs_[partner.pair];
      if (pair.head == pair.ready.size()) continue;
      const std::uint32_t depth = depth_[pair.ready[pair.head]];
      if (depth < deepest || (depth == deepest && other.remaining <= most)) continue;
      const Bytes amount = std::min(pair.ready_bytes, unit_);
      if (amount > ports_[p].budget || amount > other.budget) continue;
      if (!partial && amount < unit_ && amount < pair.remaining) continue;
      best = partner.pair;
      deepest = depth;
      most = other.remaining;
    }
    return best == none ? 0 : take(best, round);
  }

  /// Moves transfers of the pair into the round, as near to one unit as whole transfers allow.
  std::size_t take(std::uint32_t index, std::uint32_t round) {
    Pair& pair = pairs_[index];
    Bytes moved;
    std::size_t placed = 0;
    while (pair.head < pair.ready.size()) {
      const std::uint32_t i = pair.ready[pair.head];
      const Bytes bytes = transfers_[i].bytes;
      if (placed > 0 && moved.value + bytes.value / 2 > unit_.value) break;
      moved += bytes;
      round_of_[i] = round;
      just_placed_.push_back(i);
      ++pair.head;
      ++placed;
    }
    pair.ready_bytes -= moved;
    pair.remaining -= moved;
    for (const std::uint32_t p : {pair.source, pair.target}) {
      ports_[p].remaining -= moved;
      ports_[p].budget -= moved;
      if (pair.remaining > Bytes{0}) continue;
      std::erase_if(ports_[p].partners, [index](const Partner& partner) { return partner.pair == index; });
    }
    return placed;
  }

  /// What the round's transfers feed becomes ready for the next one.
  void release() {
    for (const std::uint32_t i : just_placed_) {
      for (std::uint32_t f = first_fed_[i]; f < first_fed_[i + 1]; ++f) {
        if (--waiting_[fed_[f]] == 0) make_ready(fed_[f]);
      }
    }
    just_placed_.clear();
  }

  static constexpr std::uint32_t none = 0xFFFFFFFF;
  const std::vector<Transfer>& transfers_;
  Bytes unit_;
  std::vector<std::uint32_t> round_of_, pair_of_, waiting_;
  std::vector<std::uint32_t> first_fed_, fed_;  // transfers that wait for transfer i
  std::vector<std::uint32_t> depth_;            // how many others in a row wait for it
  std::unordered_map<std::uint64_t, std::uint32_t> pair_index_;
  std::vector<Pair> pairs_;
  std::vector<Port> ports_;
  std::uint32_t first_receiver_ = 0;
  std::vector<std::pair<std::int64_t, std::uint32_t>> order_;  // (-bytes left, port)
  std::vector<std::uint32_t> just_placed_;
};

}  // namespace

std::vector<std::uint32_t> match_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, Bytes unit) {
  return Matcher(transfers, feeds, unit).run();
}

}  // namespace isthmus
