#include "sim/terms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/room.hpp"

namespace isthmus::sim {
namespace {

constexpr std::int64_t room_unit = 1 << 30;
constexpr std::size_t looked_ahead = 4;  // operations of the path that may be held while another one runs

using TermTimes = std::array<std::int64_t, term_kinds>;  // picoseconds

Duration rounded(const Constant& seconds) { return {std::llround(seconds.value * 1e12)}; }

std::int64_t scaled(std::int64_t value, std::int64_t numerator, std::int64_t denominator) {
  return static_cast<std::int64_t>(Int128{value} * numerator / denominator);
}

class Attribution {
 public:
  explicit Attribution(const FinishedRun& run) : run_(run), path_(run.timeline.critical_path()) {}

  std::vector<Term> run() {
    find_holds();
    find_caps();
    look_at_room();
    for (std::size_t at = 0; at < path_.size(); ++at) add_operation(at);
    std::vector<Term> terms;
    for (const Term& term : terms_) {
      if (term.total().value != 0) terms.push_back(term);
    }
    return terms;
  }

 private:
  struct Hold {  // while an operation of the path ran
    Instant from;
    std::int64_t room = 0;  // of what the next one needs, in units of 1 / room_unit
  };

  /// While each operation of the path ran: from when on later ones were held only by their lanes.
  void find_holds() {
    const std::vector<std::size_t> next_source = next_sources();
    for (std::size_t at = 0; at < path_.size(); ++at) {
      const Span& span = run_.timeline.spans[path_[at]];
      holds_.push_back({span.end, 0});
      std::size_t later = at + 1;
      for (std::size_t n = 0; n < looked_ahead && later < path_.size(); ++n) {
        const Instant met = std::max(span.ready, dependencies_met(path_[later]));
        if (met < span.end) {
          queries_.push_back({path_[later], met, span.end});
          asked_.push_back({at, false});
        }
        later = next_source[later];
      }
    }
  }

  Instant dependencies_met(std::uint32_t operation) const {
    Instant met;
    for (const std::uint32_t before : run_.operations.dependencies(run_.operations.list[operation])) {
      met = std::max(met, run_.timeline.spans[before].end);
    }
    return met;
  }

  /// For each place on the path the next one with another source rank.
  std::vector<std::size_t> next_sources() const {
    std::vector<std::size_t> next(path_.size(), path_.size());
    for (std::size_t at = path_.size(); at-- > 1;) {
      const Rank before = run_.operations.list[path_[at - 1]].source;
      next[at - 1] = run_.operations.list[path_[at]].source == before ? next[at] : at;
    }
    return next;
  }

  /// Which operations of the path drained under a cap of collectives.
  void find_caps() {
    link_share_.assign(path_.size(), room_unit);
    for (std::size_t at = 0; at < path_.size(); ++at) {
      const std::uint32_t route = run_.routes.of(run_.operations.list[path_[at]]);
      if (route == Routes::local || !run_.capped(route)) continue;
      const Instant begin = run_.phase_begin(path_[at], phase_count - 1);
      const Instant end = run_.timeline.spans[path_[at]].end;
      if (begin >= end) continue;
      queries_.push_back({path_[at], begin, end});
      asked_.push_back({at, true});
    }
  }

  static std::int64_t waiting(const Hold& hold, Instant end) {
    return scaled((end - hold.from).value, hold.room, room_unit);
  }

  void look_at_room() {
    const std::vector<Room> rooms = room(run_, queries_);
    for (std::size_t q = 0; q < rooms.size(); ++q) {
      const std::size_t at = asked_[q].at;
      if (asked_[q].of_cap) {
        const double links = 1 - rooms[q].links, cap = 1 - rooms[q].cap;
        if (links < cap) link_share_[at] = std::llround(links / cap * static_cast<double>(room_unit));
        continue;
      }
      // Half a thousandth is what rates and ends lose to rounding.
      const double least = rooms[q].least();
      if (least < 5e-4) continue;
      const Hold hold{queries_[q].begin, std::llround(least * static_cast<double>(room_unit))};
      if (waiting(hold, queries_[q].end) > waiting(holds_[at], queries_[q].end)) holds_[at] = hold;
    }
  }

  /// Time from `begin` to `end` without what counts as waiting for a lane, which is added to `times`.
  std::int64_t own_time(const Hold& hold, Instant begin, Instant end, TermTimes& times) const {
    const std::int64_t held = std::max<std::int64_t>((end - std::max(begin, hold.from)).value, 0);
    const std::int64_t waiting = scaled(held, hold.room, room_unit);
    times[static_cast<std::size_t>(TermKind::lane_window)] += waiting;
    return (end - begin).value - waiting;
  }

  void add_operation(std::size_t at) {
    const std::uint32_t operation = path_[at];
    const Span& span = run_.timeline.spans[operation];
    const Hold& hold = holds_[at];
    TermTimes times{};
    const Instant first = run_.phase_begin(operation, 0);
    divide_delay(operation, own_time(hold, span.ready, first, times), times);
    for (std::size_t p = 0; p < phase_count; ++p) {
      const Instant begin = run_.phase_begin(operation, p), end = run_.phase_end(operation, p);
      divide_phase(at, p, own_time(hold, begin, end, times), times);
    }
    add_parts(run_.operations.list[operation], times);
  }

  bool on_network(const Operation& operation) const {
    const std::uint32_t route = run_.routes.of(operation);
    return route != Routes::local && run_.routes.leaves_domain(route);
  }

  /// The delay is latency, enqueueing and other calls, in proportion.
  void divide_delay(std::uint32_t operation, std::int64_t time, TermTimes& times) const {
    const Operation& what = run_.operations.list[operation];
    const bool network = on_network(what);
    const Calibration& constants = run_.calibration;
    const std::int64_t fixed = run_.demands[operation].delay.value;
    const std::int64_t latency =
        std::min(fixed, rounded(network ? constants.network_latency : constants.nvlink_latency).value);
    const std::int64_t enqueue = (rounded(constants.enqueue_time) * run_.queues.group_size(operation)).value;
    if (fixed + enqueue == 0) return;
    const std::int64_t latency_time = scaled(time, latency, fixed + enqueue);
    const std::int64_t call_time = scaled(time, fixed - latency, fixed + enqueue);
    add(times, network ? TermKind::network_latency : TermKind::nvlink_latency, latency_time);
    add(times, TermKind::host_call, call_time);
    add(times, TermKind::enqueue, time - latency_time - call_time);
  }

  void divide_phase(std::size_t at, std::size_t phase, std::int64_t time, TermTimes& times) const {
    const std::uint32_t operation = path_[at];
    const Operation& what = run_.operations.list[operation];
    switch (run_.demands[operation].phases[phase].use) {
      case Demand::Use::host:
        add(times,
            what.kind == StepKind::load        ? TermKind::load_host
            : what.kind == StepKind::broadcast ? TermKind::export_host
                                               : TermKind::host_call,
            time);
        return;
      case Demand::Use::memory: add(times, TermKind::memory, time); return;
      case Demand::Use::route: divide_drain(at, phase, time, times); return;
    }
  }

  void divide_drain(std::size_t at, std::size_t phase, std::int64_t time, TermTimes& times) const {
    if (time == 0) return;
    const std::uint32_t operation = path_[at];
    const Operation& what = run_.operations.list[operation];
    const bool network = on_network(what);
    const std::int64_t amount = run_.demands[operation].phases[phase].amount;
    const std::int64_t overhead = std::max<std::int64_t>(amount - what.bytes.value, 0);
    const std::int64_t extra = amount == 0 ? 0 : scaled(time, overhead, amount);
    add(times, network ? TermKind::network_operation : TermKind::nvlink_operation, extra);
    const std::uint32_t route = run_.routes.of(what);
    const Bandwidth nominal = run_.rate_alone(route, false), achieved = run_.rate_alone(route, true);
    const std::int64_t uncapped = scaled(time - extra, link_share_[at], room_unit);
    const std::int64_t wire = scaled(uncapped, std::min(achieved, nominal).value, nominal.value);
    add(times, TermKind::collective_cap, time - extra - uncapped);
    add(times, TermKind::link_efficiency, uncapped - wire);
    add(times, network ? TermKind::network_wire : TermKind::nvlink_wire, wire);
  }

  static void add(TermTimes& times, TermKind kind, std::int64_t time) {
    times[static_cast<std::size_t>(kind)] += time;
  }

  /// Bulk and misc share each term by bytes; sums are rounded, so that they are those of sim/account.cpp.
  void add_parts(const Operation& operation, const TermTimes& times) {
    const bool other = operation.kind == StepKind::load || operation.bytes.value == 0;
    std::int64_t sum = 0, bulk_before = 0;
    for (std::size_t k = 0; k < term_kinds; ++k) {
      Term& term = terms_[k];
      term.kind = static_cast<TermKind>(k);
      if (other) {
        term.other.value += times[k];
        continue;
      }
      sum += times[k];
      const std::int64_t bulk = scaled(sum, operation.bulk_bytes.value, operation.bytes.value);
      term.bulk.value += bulk - bulk_before;
      term.misc.value += times[k] - (bulk - bulk_before);
      bulk_before = bulk;
    }
  }

  struct AskedRoom {
    std::size_t at = 0;  // on the path
    bool of_cap = false;
  };

  const FinishedRun& run_;
  std::vector<std::uint32_t> path_;
  std::vector<RoomQuery> queries_;
  std::vector<AskedRoom> asked_;          // by query
  std::vector<Hold> holds_;               // by place on the path
  std::vector<std::int64_t> link_share_;  // likewise: 1 - what the cap of collectives takes of the drain
  std::array<Term, term_kinds> terms_{};
};

}  // namespace

bool FinishedRun::capped(std::uint32_t route) const {
  return routes.collective(route) && routes.leaves_domain(route) &&
         std::isfinite(calibration.collective_bandwidth.value);
}

Bandwidth FinishedRun::rate_alone(std::uint32_t route, bool achieved) const {
  Int128 rate = std::numeric_limits<std::int64_t>::max();
  for (const Usage& usage : routes.usages(route)) {
    const Link& link = refit.fabric.links()[usage.resource];
    const Bandwidth given = achieved ? calibration.achieved(link) : link.nominal;
    rate = std::min(rate, Int128{given.value} * Usage::one / usage.weight);
  }
  return {std::max<std::int64_t>(static_cast<std::int64_t>(rate), 1)};
}

Instant FinishedRun::phase_begin(std::uint32_t operation, std::size_t phase) const {
  return phase_begins[operation * phase_count + phase];
}

Instant FinishedRun::phase_end(std::uint32_t operation, std::size_t phase) const {
  const bool last = phase + 1 == phase_count;
  return last ? timeline.spans[operation].end : phase_begin(operation, phase + 1);
}

std::vector<Term> critical_terms(const FinishedRun& run) { return Attribution(run).run(); }

}  // namespace isthmus::sim
