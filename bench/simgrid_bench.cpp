// The fluid solver and the distribution's SimGrid on the same loads, in one run: rows <case>, simgrid/<case>
// (its default, selective update) and simgrid-full/<case>, each with its makespan. Times of SimGrid are the
// processor time of the process that runs it. Without SimGrid only the first kind is there. Cases of SimGrid
// take up to minutes: choose with --benchmark_filter.

#include <string>

#include "bench/simgrid_star.hpp"
#include "bench/star_rows.hpp"

namespace {

using namespace isthmus::bench;

void measure_simgrid(benchmark::State& state, const StarLoad& load, SimgridUpdate update) {
  std::vector<isthmus::Instant> ends(load.flows.size());
  double peak = 0;
  for (auto _ : state) {
    const std::optional<SimgridRun> run = run_on_simgrid(load, update);
    if (!run) return state.SkipWithError("SimGrid failed");
    state.SetIterationTime(run->processor_time);
    for (std::size_t f = 0; f < ends.size(); ++f) {
      ends[f] = {static_cast<std::int64_t>(run->ends[f] * isthmus::picoseconds_per_second)};
    }
    peak = run->peak_bytes;
  }
  set_counters(state, load, ends, peak);
}

void add_simgrid(const StarCase& known, const std::string& title, SimgridUpdate update) {
  benchmark::RegisterBenchmark(
      (title + known.name).c_str(),
      [make = known.make, update](benchmark::State& state) { measure_simgrid(state, make(), update); })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime();
}

bool add_all() {
  const std::vector<StarCase> cases = star_cases();
  for (std::size_t c = 0; c < cases_of_peers; ++c) {
    benchmark::RegisterBenchmark(cases[c].name, [make = cases[c].make](benchmark::State& state) {
      measure_star(state, make());
    })->Unit(benchmark::kMillisecond);
    if (!has_simgrid()) continue;
    add_simgrid(cases[c], "simgrid/", SimgridUpdate::selective);
    add_simgrid(cases[c], "simgrid-full/", SimgridUpdate::full);
  }
  return true;
}

const bool registered = add_all();

}  // namespace
