#include "planner/rounds.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/match_tables.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t none = PairIndex::none;
constexpr std::size_t few = 8;  // candidates that are looked at one by one

struct Pair {
  std::uint32_t source = 0, target = 0;  // ports
  std::uint32_t transfers = 0;
  std::uint32_t head = 0, tail = 0;  // in Matcher::ready_: transfers whose feeds are placed
  Bytes ready_bytes, remaining;      // remaining: ready or not
};

/// A pair seen from one of its ports.
struct Partner {
  std::uint32_t pair, port;
};

/// One direction of a port. Ports are numbered: senders first, then receivers.
struct Port {
  std::vector<Partner> partners;  // pairs with bytes left
  Bytes remaining;
  Bytes budget;                        // what it may still move in the present round
  std::uint32_t rank = 0;              // its place in the present round's order
  std::uint32_t before = 0, next = 0;  // neighbours among the free ports of its direction, in that order
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
    for (const Transfer& transfer : transfers)
      receivers_ = std::max(receivers_, std::max(transfer.source, transfer.target) + 1);
    ports_.resize(std::size_t{2} * receivers_);
    index_.resize(receivers_);
    if (index_.dense()) sets_.resize(receivers_);
    for (std::uint32_t i = 0; i < transfers.size(); ++i) count(i);
    std::uint32_t places = 0;
    for (Pair& pair : pairs_) {
      pair.head = pair.tail = places;
      places += pair.transfers;
    }
    ready_.resize(transfers.size());
    for (std::uint32_t p = 0; p < ports_.size(); ++p)
      if (!ports_[p].partners.empty()) order_.emplace_back(0, p);
    for (std::uint32_t i = 0; i < transfers.size(); ++i)
      if (waiting_[i] == 0) make_ready(i);
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
    depth_.resize(transfers_.size());
    first_fed_.assign(transfers_.size() + 1, 0);
    if (feeds.empty()) return;
    for (const Feed& feed : feeds) {
      ++first_fed_[feed.feed + 1];
      ++waiting_[feed.transfer];
    }
    for (std::size_t i = 0; i < transfers_.size(); ++i) first_fed_[i + 1] += first_fed_[i];
    fed_.resize(feeds.size());
    std::vector<std::uint32_t> next(first_fed_.begin(), first_fed_.end() - 1);
    for (const Feed& feed : feeds) fed_[next[feed.feed]++] = feed.transfer;
    for (std::uint32_t i = static_cast<std::uint32_t>(transfers_.size()); i-- > 0;) {
      for (std::uint32_t f = first_fed_[i]; f < first_fed_[i + 1]; ++f)
        depth_[i] = std::max(depth_[i], depth_[fed_[f]] + 1);
    }
  }

  void count(std::uint32_t i) {
    const Transfer& transfer = transfers_[i];
    std::uint32_t& known = index_.at(transfer.source, transfer.target);
    if (known == none) {
      known = static_cast<std::uint32_t>(pairs_.size());
      const std::uint32_t target = receivers_ + transfer.target;
      pairs_.push_back({transfer.source, target, 0, 0, 0, {}, {}});
      ports_[transfer.source].partners.push_back({known, target});
      ports_[target].partners.push_back({known, transfer.source});
    }
    Pair& pair = pairs_[known];
    pair_of_[i] = known;
    ++pair.transfers;
    pair.remaining += transfer.bytes;
    ports_[pair.source].remaining += transfer.bytes;
    ports_[pair.target].remaining += transfer.bytes;
  }

  void make_ready(std::uint32_t i) {
    Pair& pair = pairs_[pair_of_[i]];
    ready_[pair.tail++] = i;
    pair.ready_bytes += transfers_[i].bytes;
    note(pair);
  }

  /// Orders the ports by the bytes that they have left and links those of each direction.
  void begin_round() {
    std::erase_if(order_, [this](const auto& entry) { return ports_[entry.second].partners.empty(); });
    for (auto& [remaining, p] : order_) remaining = -ports_[p].remaining.value;
    std::sort(order_.begin(), order_.end());
    std::uint32_t last[2] = {none, none};
    first_free_[0] = first_free_[1] = none;
    sets_.clear_free();
    for (std::uint32_t rank = 0; rank < order_.size(); ++rank) {
      const std::uint32_t p = order_[rank].second;
      Port& port = ports_[p];
      const std::size_t side = side_of(p);
      port.budget = unit_;
      port.rank = rank;
      port.before = last[side];
      port.next = none;
      (last[side] == none ? first_free_[side] : ports_[last[side]].next) = p;
      last[side] = p;
      sets_.enter(side, column_of(p));
    }
  }

  std::size_t side_of(std::uint32_t port) const { return port < receivers_ ? 0 : 1; }

  void leave(std::uint32_t p) {
    const Port& port = ports_[p];
    const std::size_t side = side_of(p);
    (port.before == none ? first_free_[side] : ports_[port.before].next) = port.next;
    if (port.next != none) ports_[port.next].before = port.before;
    sets_.leave(side, column_of(p));
  }

  /// One round; with `partial`, a pair may move less than a unit although more of it will come. The ports
  /// with the most bytes left choose first, senders and receivers alike.
  std::size_t match(std::uint32_t round, bool partial) {
    begin_round();
    std::size_t placed = 0;
    for (const auto& [remaining, p] : order_) {
      while (ports_[p].budget > Bytes{0}) {
        const std::uint32_t best = choose(p, partial);
        if (best == none) break;
        placed += take(best, round);
      }
    }
    return placed;
  }

  /// Whole units go to ports that are still free in this round; remainders of pairs share a round up to one
  /// unit for each port.
  bool fits(const Pair& pair, bool partial) const {
    if (pair.head == pair.tail) return false;
    const Bytes amount = std::min(pair.ready_bytes, unit_);
    if (amount > ports_[pair.source].budget || amount > ports_[pair.target].budget) return false;
    return partial || amount >= unit_ || amount >= pair.remaining;
  }

  /// Among the port's pairs that fit, one of those that the most others in a row wait for; of these the one
  /// whose other port has the most left.
  std::uint32_t choose(std::uint32_t p, bool partial) const {
    if (!index_.dense()) return best_partner(p, partial);
    const std::size_t side = 1 - side_of(p), candidates = sets_.candidates(p, side, partial);
    if (candidates == 0) return none;
    // Many candidates: the free ports stand in the wanted order, and one of the first is among them.
    if (candidates > few && !sets_.any_deep(p, side)) {
      for (std::uint32_t q = first_free_[side]; q != none; q = ports_[q].next) {
        if (sets_.candidate(p, column_of(q), partial) && fits(pairs_[pair_between(p, q)], partial))
          return pair_between(p, q);
      }
      return none;
    }
    Choice choice;
    sets_.for_each_candidate(p, side, partial, [&](std::uint32_t column) {
      const std::uint32_t q = side == 0 ? column : column + receivers_;
      consider(pair_between(p, q), q, partial, choice);
    });
    return choice.pair;
  }

  struct Choice {
    std::uint32_t pair = none, depth = 0, rank = none;
  };

  void consider(std::uint32_t index, std::uint32_t other, bool partial, Choice& choice) const {
    const Pair& pair = pairs_[index];
    if (!fits(pair, partial)) return;
    const std::uint32_t depth = depth_[ready_[pair.head]], rank = ports_[other].rank;
    const bool better =
        choice.pair == none || depth > choice.depth || (depth == choice.depth && rank < choice.rank);
    if (better) choice = {index, depth, rank};
  }

  std::uint32_t best_partner(std::uint32_t p, bool partial) const {
    Choice choice;
    for (const Partner& partner : ports_[p].partners) consider(partner.pair, partner.port, partial, choice);
    return choice.pair;
  }

  std::uint32_t column_of(std::uint32_t port) const { return port < receivers_ ? port : port - receivers_; }
  std::uint32_t pair_between(std::uint32_t p, std::uint32_t q) const {
    return p < receivers_ ? index_.known(p, q - receivers_) : index_.known(q, p - receivers_);
  }

  /// Notes what `choose` looks for after the pair's queue has changed.
  void note(const Pair& pair) {
    if (!index_.dense()) return;
    const bool any = pair.head != pair.tail;
    const Bytes amount = std::min(pair.ready_bytes, unit_);
    const bool whole = any && (amount >= unit_ || amount >= pair.remaining);
    const bool deep = any && depth_[ready_[pair.head]] > 0;
    sets_.set(pair.source, column_of(pair.target), any, whole, deep);
    sets_.set(pair.target, column_of(pair.source), any, whole, deep);
  }

  /// Moves transfers of the pair into the round, as near to one unit as whole transfers allow.
  std::size_t take(std::uint32_t index, std::uint32_t round) {
    Pair& pair = pairs_[index];
    Bytes moved;
    std::size_t placed = 0;
    while (pair.head < pair.tail) {
      const std::uint32_t i = ready_[pair.head];
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
      Port& port = ports_[p];
      port.remaining -= moved;
      port.budget -= moved;
      if (port.budget <= Bytes{0}) leave(p);
      if (pair.remaining > Bytes{0}) continue;
      std::erase_if(port.partners, [index](const Partner& partner) { return partner.pair == index; });
    }
    note(pair);
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

  const std::vector<Transfer>& transfers_;
  Bytes unit_;
  std::vector<std::uint32_t> round_of_, pair_of_, waiting_;
  std::vector<std::uint32_t> first_fed_, fed_;  // transfers that wait for transfer i
  std::vector<std::uint32_t> depth_;            // how many others in a row wait for it
  PairIndex index_;
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> ready_;  // transfers, pair by pair
  std::vector<Port> ports_;
  std::uint32_t receivers_ = 0;                                // the first receiving port
  std::vector<std::pair<std::int64_t, std::uint32_t>> order_;  // (-bytes left, port)
  std::uint32_t first_free_[2] = {none, none};                 // of senders and of receivers
  PortSets sets_;
  std::vector<std::uint32_t> just_placed_;
};

}  // namespace

std::vector<std::uint32_t> match_rounds(const std::vector<Transfer>& transfers,
                                        const std::vector<Feed>& feeds, Bytes unit) {
  return Matcher(transfers, feeds, unit).run();
}

}  // namespace isthmus
