// The fluid solver alone, one thread: construction and the whole run of flows between hosts of one switch.
// star_rnd/<hosts>/<flows>: all flows at once. star_seq/<hosts>/<flows>/<window>: each source keeps `window`
// in flight. Ports of 50 GB/s, 2 us before a flow starts; the first half of the hosts are sources, the others
// targets; sizes uniform in [1 MiB, 17 MiB). pairs/512/16384: 64 targets per source, [16 MB, 24 MB), no
// latency. all_to_all/<n>: n x n equal flows. Random numbers: splitmix64 with seed 1; source, target, size.

#include <deque>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/fluid.hpp"

namespace {

using isthmus::Duration;
using isthmus::Instant;
using isthmus::sim::Fluid;

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

struct StarFlow {
  std::uint32_t source = 0, target = 0;  // counted apart
  std::int64_t bytes = 0;
};

struct StarLoad {
  std::uint32_t sources = 0, targets = 0;
  std::size_t window = 0;  // flows in flight per source; 0: all
  Duration latency;
  std::vector<StarFlow> flows;
};

std::int64_t megabytes(std::int64_t n) { return n * 1'000'000; }

StarLoad random_star(std::uint32_t hosts, std::size_t flows, std::size_t window) {
  StarLoad load{hosts / 2, hosts / 2, window, Duration{2'000'000}, {}};
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
  StarLoad load{256, 256, 0, {}, {}};
  SplitMix random;
  for (std::uint32_t s = 0; s < load.sources; ++s) {
    for (std::uint32_t k = 0; k < 64; ++k) {
      load.flows.push_back({s, (s + k) % load.targets, megabytes(16) + random.below(8'000'000)});
    }
  }
  return load;
}

StarLoad all_to_all(std::uint32_t gpus) {
  StarLoad load{gpus, gpus, 0, {}, {}};
  load.flows.reserve(std::size_t{gpus} * gpus);
  for (std::uint32_t s = 0; s < gpus; ++s) {
    for (std::uint32_t t = 0; t < gpus; ++t) load.flows.push_back({s, t, megabytes(1)});
  }
  return load;
}

/// Runs a load on a solver of its own.
class StarRun {
 public:
  explicit StarRun(const StarLoad& load) : load_(load), in_order_(load.sources) {
    constexpr std::int64_t port = 50'000'000'000;
    for (std::uint32_t p = 0; p < load.sources + load.targets; ++p) fluid_.add_resource(port);
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    known.reserve(load.flows.size());
    for (const StarFlow& flow : load.flows) {
      const std::uint64_t key = (std::uint64_t{flow.source} << 32U) | flow.target;
      const auto [entry, is_new] = known.try_emplace(key, 0);
      if (is_new) entry->second = fluid_.add_class({{flow.source}, {load.sources + flow.target}});
      class_of_.push_back(entry->second);
    }
  }

  Instant run() {
    for (std::uint32_t f = 0; f < load_.flows.size(); ++f) {
      std::vector<std::uint32_t>& order = in_order_[load_.flows[f].source];
      order.push_back(f);
      if (load_.window == 0 || order.size() <= load_.window)
        starting_.push_back({Instant{} + load_.latency, f});
    }
    next_.assign(load_.sources, static_cast<std::uint32_t>(load_.window));
    for (Instant when; next_instant(when);) step(when);
    return fluid_.now();
  }

 private:
  struct Start {
    Instant when;
    std::uint32_t flow;
  };

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
      if (load_.window == 0) break;
      const std::uint32_t source = load_.flows[flow].source;
      if (next_[source] >= in_order_[source].size()) continue;
      starting_.push_back({when + load_.latency, in_order_[source][next_[source]++]});
    }
    for (; !starting_.empty() && starting_.front().when == when; starting_.pop_front()) {
      const std::uint32_t flow = starting_.front().flow;
      fluid_.start(class_of_[flow], load_.flows[flow].bytes, flow);
    }
    fluid_.solve();
  }

  const StarLoad& load_;
  Fluid fluid_;
  std::vector<std::uint32_t> class_of_;               // by flow
  std::vector<std::vector<std::uint32_t>> in_order_;  // flows by source
  std::vector<std::uint32_t> next_;                   // by source: the next of them to start
  std::deque<Start> starting_;
  std::vector<std::uint32_t> ended_;
};

void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

double peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

void measure(benchmark::State& state, const StarLoad& load) {
  reset_peak();
  Instant end;
  for (auto _ : state) end = StarRun(load).run();
  state.counters["flows_per_second"] = benchmark::Counter(static_cast<double>(load.flows.size()),
                                                          benchmark::Counter::kIsIterationInvariantRate);
  state.counters["makespan_seconds"] = isthmus::seconds(end);
  state.counters["peak_rss_bytes"] = peak_bytes();
}

template <class Make>
void add(const char* name, Make make) {
  benchmark::RegisterBenchmark(name, [make](benchmark::State& state) {
    measure(state, make());
  })->Unit(benchmark::kMillisecond);
}

void add_all() {
  add("star_seq/1024/20000/4", [] { return random_star(1024, 20'000, 4); });
  add("star_rnd/1024/4000", [] { return random_star(1024, 4000, 0); });
  add("star_seq/128/5000/1", [] { return random_star(128, 5000, 1); });
  add("pairs/512/16384", pairs);
  add("star_rnd/8192/100000", [] { return random_star(8192, 100'000, 0); });
  add("all_to_all/3200", [] { return all_to_all(3200); });
}

const bool registered = (add_all(), true);

}  // namespace
