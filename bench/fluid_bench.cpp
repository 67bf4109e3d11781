// The fluid solver alone: the loads of bench/star.hpp. bench/simgrid_bench.cpp has the same beside SimGrid.

#include "bench/star_rows.hpp"

namespace {

bool add_all() {
  for (const isthmus::bench::StarCase& known : isthmus::bench::star_cases()) {
    benchmark::RegisterBenchmark(known.name, [make = known.make](benchmark::State& state) {
      isthmus::bench::measure_star(state, make());
    })->Unit(benchmark::kMillisecond);
  }
  return true;
}

const bool registered = add_all();

}  // namespace
