#pragma once
// Rows of Google Benchmark programs that run loads of bench/star.hpp: what they print besides times.
// flows_per_second: of processor time. makespan_seconds: simulated. peak_rss_bytes: of the whole process
// since the row began, or of the child process that ran the row.

#include <functional>

#include <benchmark/benchmark.h>

#include "bench/star.hpp"

namespace isthmus::bench {

struct StarCase {
  const char* name;
  std::function<StarLoad()> make;
};
/// Those that the simulator of another project runs in minutes come first.
std::vector<StarCase> star_cases();
inline constexpr std::size_t cases_of_peers = 4;

/// One load on the fluid solver.
void measure_star(benchmark::State& state, const StarLoad& load);

void set_counters(benchmark::State& state, const StarLoad& load, const std::vector<Instant>& ends,
                  double peak_bytes);

}  // namespace isthmus::bench
