// Inventories and layouts of large models. Run: build/release/bench/inventory_bench

#include <filesystem>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "model/inventory.hpp"
#include "model/refit.hpp"

namespace {

using namespace isthmus;

const std::filesystem::path scenarios = std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";

/// Kimi K3 (2.8e12 parameters) from 2,048 training to 2,048 generation GPUs.
constexpr const char* large = R"(
model: {config: models/kimi-k3.json, vision: true}
fabric: {preset: dgx-h200-superpod, hosts: 512}
train: {gpus: 2048, ep: 64, etp: 1, pp: 8, layers_first: 11, layers_last: 10}
generate: {gpus: 2048, tp: 32}
)";

/// Of the whole process so far.
double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

void bench_inventory(benchmark::State& state) {
  std::int64_t tensors = 0;
  for (auto _ : state) tensors = totals(read_model_config(scenarios / "models/kimi-k3.json")).tensor_count;
  state.counters["tensors"] = static_cast<double>(tensors);
  state.counters["peak_megabytes"] = peak_megabytes();
}
BENCHMARK(bench_inventory)->Name("inventory/kimi-k3")->Unit(benchmark::kMillisecond);

void bench_layouts(benchmark::State& state) {
  const Scenario scenario = parse_scenario(large, scenarios / "kimi-k3.yaml");
  std::size_t tensors = 0, geometries = 0;
  for (auto _ : state) {
    const Refit refit = resolve(scenario);
    for (const Geometry& geometry : refit.geometries) {
      benchmark::DoNotOptimize(geometry.source.regions());
      benchmark::DoNotOptimize(geometry.target.regions());
    }
    tensors = refit.tensors.size();
    geometries = refit.geometries.size();
  }
  state.counters["tensors"] = static_cast<double>(tensors);
  state.counters["geometries"] = static_cast<double>(geometries);
  state.counters["peak_megabytes"] = peak_megabytes();
}
BENCHMARK(bench_layouts)->Name("inventory+layouts/kimi-k3/2048+2048")->Unit(benchmark::kMillisecond);

}  // namespace
