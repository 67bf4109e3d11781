#include "bench/star.hpp"

#include <deque>
#include <unordered_map>

#include "sim/fluid.hpp"

namespace isthmus::bench {
namespace {

constexpr std::int64_t port = 50'000'000'000, megabyte = 1'000'000;

class SplitMix {
 public:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(next() % bound); }

 private:
  std::uint64_t state_ = 1;
};

StarLoad empty_star(std::uint32_t sources, std::uint32_t targets) {
  StarLoad load;
  load.sources = sources;
  load.targets = targets;
  load.ports.assign(std::size_t{sources} + targets, port);
  return load;
}

/// Runs a load on a solver of its own.
class StarRun {
 public:
  explicit StarRun(const StarLoad& load)
      : load_(load), in_order_(load.by_source()), ends_(load.flows.size()) {
    for (const std::int64_t rate : load.ports) fluid_.add_resource(rate);
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    known.reserve(load.flows.size());
    class_of_.reserve(load.flows.size());
    for (const StarFlow& flow : load.flows) {
      const std::uint64_t key = (std::uint64_t{flow.source} << 32U) | flow.target;
      const auto [entry, is_new] = known.try_emplace(key, 0);
      if (is_new) entry->second = fluid_.add_class({{flow.source}, {load.sources + flow.target}});
      class_of_.push_back(entry->second);
    }
  }

  std::vector<Instant> run() {
    next_.assign(load_.sources, 0);
    if (load_.window == 0) {
      for (std::uint32_t f = 0; f < load_.flows.size(); ++f) {
        starting_.push_back({load_.flows[f].start + load_.latency, f});
      }
    }
    for (std::size_t w = 0; w < load_.window; ++w) {
      for (std::uint32_t s = 0; s < load_.sources; ++s) start_next(s, Instant{});
    }
    for (Instant when; next_instant(when);) step(when);
    return std::move(ends_);
  }

 private:
  struct Start {
    Instant when;
    std::uint32_t flow;
  };

  void start_next(std::uint32_t source, Instant now) {
    if (next_[source] == in_order_[source].size()) return;
    starting_.push_back({now + load_.latency, in_order_[source][next_[source]++]});
  }

  bool next_instant(Instant& when) {
    const bool ends = fluid_.next_end(when);
    if (starting_.empty()) return ends;
    if (!ends || starting_.front().when < when) when = starting_.front().when;
    return true;
  }

  void step(Instant when) {
    ended_.clear();
    fluid_.advance(when, ended_);
    for (const std::uint32_t flow : ended_) {
      ends_[flow] = when;
      if (load_.window > 0) start_next(load_.flows[flow].source, when);
    }
    for (; !starting_.empty() && starting_.front().when == when; starting_.pop_front()) {
      const std::uint32_t flow = starting_.front().flow;
      fluid_.start(class_of_[flow], load_.flows[flow].bytes, flow);
    }
    fluid_.solve();
  }

  const StarLoad& load_;
  sim::Fluid fluid_;
  std::vector<std::uint32_t> class_of_;  // by flow
  std::vector<std::vector<std::uint32_t>> in_order_;
  std::vector<std::uint32_t> next_;  // by source: the next of them to start
  std::deque<Start> starting_;
  std::vector<std::uint32_t> ended_;
  std::vector<Instant> ends_;  // by flow
};

}  // namespace

std::vector<std::vector<std::uint32_t>> StarLoad::by_source() const {
  std::vector<std::vector<std::uint32_t>> order(sources);
  if (window == 0) return order;
  for (std::uint32_t f = 0; f < flows.size(); ++f) order[flows[f].source].push_back(f);
  return order;
}

StarLoad random_star(std::uint32_t hosts, std::size_t flows, std::size_t window) {
  StarLoad load = empty_star(hosts / 2, hosts / 2);
  load.window = window;
  load.latency = Duration{2'000'000};
  SplitMix random;
  for (std::size_t f = 0; f < flows; ++f) {
    StarFlow flow;
    flow.source = random.below(load.sources);
    if (window > 0) flow.source = static_cast<std::uint32_t>(f % load.sources);
    flow.target = random.below(load.targets);
    flow.bytes = (std::int64_t{1} << 20U) + random.below(16U << 20U);
    load.flows.push_back(flow);
  }
  return load;
}

StarLoad pairs() {
  StarLoad load = empty_star(256, 256);
  SplitMix random;
  for (std::uint32_t s = 0; s < load.sources; ++s) {
    for (std::uint32_t k = 0; k < 64; ++k) {
      load.flows.push_back({s, (s + k) % load.targets, 16 * megabyte + random.below(8'000'000)});
    }
  }
  return load;
}

StarLoad all_to_all(std::uint32_t gpus) {
  StarLoad load = empty_star(gpus, gpus);
  load.flows.reserve(std::size_t{gpus} * gpus);
  for (std::uint32_t s = 0; s < gpus; ++s) {
    for (std::uint32_t t = 0; t < gpus; ++t) load.flows.push_back({s, t, megabyte});
  }
  return load;
}

std::vector<Instant> run_star(const StarLoad& load) { return StarRun(load).run(); }

}  // namespace isthmus::bench
