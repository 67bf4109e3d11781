#include "tests/sim/fluid_case.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace isthmus::sim::cases {
namespace {

constexpr long double picoseconds = 1e12L;

class CaseMaker {
 public:
  explicit CaseMaker(std::uint64_t seed) : random_(seed) {}

  FluidCase run() {
    const std::uint32_t resources = below(8) + 1;
    for (std::uint32_t r = 0; r < resources; ++r) result_.capacities.push_back(capacity());
    const std::uint32_t classes = below(16) + 1;
    for (std::uint32_t c = 0; c < classes; ++c) result_.classes.push_back(flow_class(resources));
    const std::uint32_t flows = below(30) + 1;
    for (std::uint32_t f = 0; f < flows; ++f) {
      result_.flows.push_back(
          {below(classes), one_in(2) ? 0 : std::int64_t{below(8)} * 50'000'000'000, amount()});
    }
    if (one_in(3)) fault(below(resources));
    return result_;
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool one_in(std::uint32_t bound) { return below(bound) == 0; }
  std::int64_t capacity() {  // many are equal
    return one_in(2) ? 500'000'000 : (std::int64_t{below(1000)} + 1) * 1'000'000;
  }
  std::int64_t amount() {
    if (one_in(12)) return 0;
    if (one_in(12)) return 1;
    return one_in(2) ? 100'000'000 : std::int64_t{1'000'000} + below(1'000'000'000);
  }

  ClassCase flow_class(std::uint32_t resources) {
    ClassCase made;
    const bool plain = one_in(2);
    std::set<std::uint32_t> used;
    const std::uint32_t most = below(5) + 1;
    for (std::uint32_t l = 0; l < most; ++l) used.insert(below(resources));
    const std::uint32_t weights[] = {Usage::one, Usage::one / 8, Usage::one * 2, Usage::one / 3};
    for (const std::uint32_t r : used) made.usages.push_back({r, weights[plain ? 0 : below(4)]});
    if (!plain && one_in(3)) made.sharing.priority = below(4) + 1;
    if (!plain && one_in(3)) made.sharing.cap = (std::int64_t{below(300)} + 1) * 1'000'000;
    if (made.sharing.cap && one_in(6)) made.usages.clear();
    return made;
  }

  void fault(std::uint32_t resource) {
    const std::int64_t begin = std::int64_t{below(4)} * 100'000'000'000 + 1;
    result_.changes.push_back({begin, resource, one_in(2) ? 0 : capacity()});
    result_.changes.push_back({begin + 300'000'000'000, resource, capacity()});
  }

  std::mt19937_64 random_;
  FluidCase result_;
};

/// One flow after the other, everything again at each event.
class NaiveFill {
 public:
  explicit NaiveFill(const FluidCase& input)
      : input_(input),
        capacity_(input.capacities.begin(), input.capacities.end()),
        left_(input.flows.size()),
        level_(input.flows.size()),
        end_(input.flows.size(), -1) {
    for (std::size_t f = 0; f < left_.size(); ++f) left_[f] = static_cast<long double>(input.flows[f].amount);
  }

  std::vector<long double> run() {
    while (true) {
      for (const CapacityCase& change : input_.changes) {
        if (static_cast<long double>(change.start) <= now_)
          capacity_[change.resource] = static_cast<long double>(change.capacity);
      }
      for (std::size_t f = 0; f < end_.size(); ++f) {
        if (active(f) && left_[f] <= 0) end_[f] = now_;
      }
      fill();
      const long double next = next_event();
      if (std::isinf(next)) return end_;
      for (std::size_t f = 0; f < end_.size(); ++f) {
        if (!active(f)) continue;
        // What would end within a thousandth of a picosecond has ended.
        const bool ends = now_ + left_[f] / rate(f) * picoseconds <= next + 1e-3L;
        left_[f] -= rate(f) * (next - now_) / picoseconds;
        if (ends) end_[f] = next;
      }
      now_ = next;
    }
  }

 private:
  const ClassCase& class_of(std::size_t f) const { return input_.classes[input_.flows[f].flow_class]; }
  bool active(std::size_t f) const {
    return end_[f] < 0 && static_cast<long double>(input_.flows[f].start) <= now_;
  }
  long double priority(std::size_t f) const { return class_of(f).sharing.priority; }
  long double rate(std::size_t f) const { return level_[f] * priority(f); }
  static long double weight(const Usage& usage) {
    return usage.weight / static_cast<long double>(Usage::one);
  }

  long double next_event() const {
    long double next = INFINITY;
    for (std::size_t f = 0; f < end_.size(); ++f) {
      const auto start = static_cast<long double>(input_.flows[f].start);
      if (active(f) && rate(f) > 0) next = std::min(next, now_ + left_[f] / rate(f) * picoseconds);
      if (start > now_) next = std::min(next, start);
    }
    for (const CapacityCase& change : input_.changes) {
      const auto start = static_cast<long double>(change.start);
      if (start > now_) next = std::min(next, start);
    }
    return next;
  }

  /// Freezes the flows of the tightest resource, or at the lowest cap, again and again.
  void fill() {
    std::vector<long double> room = capacity_;
    std::vector<char> open(end_.size());
    for (std::size_t f = 0; f < open.size(); ++f) open[f] = active(f);
    while (true) {
      std::vector<long double> load(room.size());
      long double lowest = INFINITY;
      for (std::size_t f = 0; f < open.size(); ++f) {
        if (open[f] == 0) continue;
        const auto& [usages, sharing] = class_of(f);
        for (const Usage& usage : usages) load[usage.resource] += weight(usage) * priority(f);
        if (sharing.cap) lowest = std::min(lowest, static_cast<long double>(*sharing.cap) / priority(f));
      }
      std::size_t tightest = room.size();
      for (std::size_t r = 0; r < room.size(); ++r) {
        if (load[r] == 0 || room[r] / load[r] >= lowest) continue;
        lowest = std::max(room[r], 0.0L) / load[r];
        tightest = r;
      }
      if (std::isinf(lowest)) return;
      freeze(tightest, lowest, open, room);
    }
  }

  void freeze(std::size_t tightest, long double level, std::vector<char>& open,
              std::vector<long double>& room) {
    for (std::size_t f = 0; f < open.size(); ++f) {
      if (open[f] == 0) continue;
      const auto& [usages, sharing] = class_of(f);
      const bool capped = sharing.cap && static_cast<long double>(*sharing.cap) / priority(f) <= level;
      const bool uses = std::any_of(usages.begin(), usages.end(),
                                    [&](const Usage& usage) { return usage.resource == tightest; });
      if (!(tightest == room.size() ? capped : uses)) continue;
      open[f] = 0;
      level_[f] = level;
      for (const Usage& usage : usages) room[usage.resource] -= level * weight(usage) * priority(f);
    }
  }

  const FluidCase& input_;
  std::vector<long double> capacity_, left_, level_, end_;
  long double now_ = 0;
};

/// The solver under a case, with its checks.
class CheckedRun {
 public:
  explicit CheckedRun(const FluidCase& input)
      : input_(input), capacities_(input.capacities), moved_(input.flows.size()), could_(capacities_.size()) {
    result_.ends.assign(input.flows.size(), Instant{-1});
    fluid_ = made();
    for (const FlowCase& flow : input.flows) times_.insert(flow.start);
    for (const CapacityCase& change : input.changes) times_.insert(change.start);
  }

  SolvedCase run() {
    for (Instant when; result_.wrong.empty() && next_instant(when);) step(when);
    if (fluid_.active() > 0 && result_.wrong.empty()) result_.wrong = "flows stand still at the end";
    if (result_.wrong.empty()) check_amounts();
    return result_;
  }

 private:
  Fluid made() const {
    Fluid fluid;
    for (const std::int64_t capacity : capacities_) fluid.add_resource(capacity);
    for (const ClassCase& flow_class : input_.classes) fluid.add_class(flow_class.usages, flow_class.sharing);
    return fluid;
  }

  bool next_instant(Instant& when) {
    const bool ends = fluid_.next_end(when);
    if (times_.empty()) return ends;
    if (!ends || *times_.begin() < when.value) when = {*times_.begin()};
    return true;
  }

  bool started(std::size_t f) const { return input_.flows[f].start <= fluid_.now().value && begun_; }

  void step(Instant when) {
    integrate(when);
    std::vector<std::uint32_t> ended;
    fluid_.advance(when, ended);
    for (const std::uint32_t flow : ended) result_.ends[flow] = when;
    if (times_.erase(when.value) > 0) {
      for (std::uint32_t f = 0; f < input_.flows.size(); ++f) {
        if (input_.flows[f].start == when.value)
          fluid_.start(input_.flows[f].flow_class, input_.flows[f].amount, f);
      }
      for (const CapacityCase& change : input_.changes) {
        if (change.start != when.value) continue;
        capacities_[change.resource] = change.capacity;
        fluid_.set_capacity(change.resource, change.capacity);
      }
    }
    begun_ = true;
    fluid_.solve();
    result_.wrong = fluid_.certificate();
    if (result_.wrong.empty()) compare_with_fresh();
  }

  void integrate(Instant when) {
    const auto time = static_cast<long double>((when - fluid_.now()).value) / picoseconds;
    for (std::size_t r = 0; r < could_.size(); ++r)
      could_[r] += static_cast<long double>(capacities_[r]) * time;
    const Allocation rates = fluid_.allocation();
    for (std::size_t f = 0; f < moved_.size(); ++f) {
      if (!started(f) || result_.ends[f].value >= 0) continue;
      const std::uint32_t c = input_.flows[f].flow_class;
      const auto rate = static_cast<long double>(rates.classes[c].rate) * input_.classes[c].sharing.priority;
      moved_[f] += rate / 65536 * time;
    }
  }

  /// Equal but for the last units: where two resources tie, the one that is rounded first may differ.
  void compare_with_fresh() {
    Fluid fresh = made();
    for (std::uint32_t f = 0; f < input_.flows.size(); ++f) {
      const FlowCase& flow = input_.flows[f];
      if (started(f) && result_.ends[f].value < 0) fresh.start(flow.flow_class, flow.amount, f);
    }
    fresh.solve();
    const Allocation here = fluid_.allocation(), there = fresh.allocation();
    for (std::size_t c = 0; c < here.classes.size(); ++c) {
      const std::uint64_t a = here.classes[c].rate, b = there.classes[c].rate;
      if (std::max(a, b) - std::min(a, b) > 4096)
        result_.wrong = fmt::format("class {} has rate {}, from scratch {}", c, a, b);
    }
  }

  void check_amounts() {
    std::vector<long double> carried(could_.size());
    for (std::size_t f = 0; f < moved_.size(); ++f) {
      const ClassCase& flow_class = input_.classes[input_.flows[f].flow_class];
      const auto amount = static_cast<long double>(input_.flows[f].amount);
      for (const Usage& usage : flow_class.usages) {
        carried[usage.resource] += amount * usage.weight / static_cast<long double>(Usage::one);
      }
      // The last picosecond may carry more than what was left.
      if (moved_[f] < amount * (1 - 1e-12L) || moved_[f] > amount * (1 + 1e-12L) + 0.1L)
        result_.wrong = fmt::format("flow {} moved {} of {}", f, static_cast<double>(moved_[f]), amount);
    }
    for (std::size_t r = 0; r < could_.size(); ++r) {
      if (carried[r] > could_[r] * (1 + 1e-15L)) result_.wrong = fmt::format("resource {} beats its wire", r);
    }
  }

  const FluidCase& input_;
  std::vector<std::int64_t> capacities_;
  std::vector<long double> moved_, could_;  // by flow; by resource
  std::set<std::int64_t> times_;            // of starts and changes to come
  Fluid fluid_;
  SolvedCase result_;
  bool begun_ = false;
};

}  // namespace

FluidCase random_fluid_case(std::uint64_t seed) { return CaseMaker(seed).run(); }

std::vector<long double> naive_ends(const FluidCase& input) { return NaiveFill(input).run(); }

SolvedCase solve_case(const FluidCase& input) { return CheckedRun(input).run(); }

}  // namespace isthmus::sim::cases
