#include "bench/star_rows.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace isthmus::bench {
namespace {

void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

double peak_bytes_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

std::vector<StarCase> star_cases() {
  return {{"star_seq/1024/20000/4", [] { return random_star(1024, 20'000, 4); }},
          {"star_rnd/1024/4000", [] { return random_star(1024, 4000, 0); }},
          {"star_seq/128/5000/1", [] { return random_star(128, 5000, 1); }},
          {"pairs/512/16384", pairs},
          {"star_rnd/8192/100000", [] { return random_star(8192, 100'000, 0); }},
          {"all_to_all/3200", [] { return all_to_all(3200); }}};
}

void measure_star(benchmark::State& state, const StarLoad& load) {
  reset_peak();
  std::vector<Instant> ends;
  for (auto _ : state) ends = run_star(load);
  set_counters(state, load, ends, peak_bytes_of_process());
}

void set_counters(benchmark::State& state, const StarLoad& load, const std::vector<Instant>& ends,
                  double peak_bytes) {
  state.counters["flows_per_second"] = benchmark::Counter(static_cast<double>(load.flows.size()),
                                                          benchmark::Counter::kIsIterationInvariantRate);
  state.counters["makespan_seconds"] = isthmus::seconds(*std::max_element(ends.begin(), ends.end()));
  state.counters["peak_rss_bytes"] = peak_bytes;
}

}  // namespace isthmus::bench
