// How long a fabric takes to build and how much memory, and how long a route takes to be found. Wanted:
// 16,384 DGX hosts, or 1,820 racks (32,760 trays), in five seconds and 2 GB; routes in a microsecond.
// Peak memory is the kernel's high-water mark (Linux), reset before each build.

#include <fstream>
#include <string>

#include <benchmark/benchmark.h>

#include "model/fabric.hpp"
#include "model/fabric_graph.hpp"

namespace {

using isthmus::Fabric;
using isthmus::FabricSpec;

enum Kind : std::int64_t { dgx, rack, dgx_hashed, dgx_relayed };

FabricSpec spec_of(const benchmark::State& state) {
  FabricSpec spec;
  spec.preset = state.range(1) == rack ? "gb200-nvl72" : "dgx-h100-superpod";
  spec.hosts = static_cast<int>(state.range(0));
  spec.routing.hashed = state.range(1) == dgx_hashed;
  spec.routing.pxn = state.range(1) == dgx_relayed;
  return spec;
}

std::string label(const FabricSpec& spec) {
  return spec.preset + (spec.routing.hashed ? ", hashed" : "") + (spec.routing.pxn ? ", PXN" : "");
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024e-6;
  }
  return 0;
}

void build(benchmark::State& state) {
  const FabricSpec spec = spec_of(state);
  reset_peak();
  for (auto _ : state) benchmark::DoNotOptimize(Fabric(spec).links().data());
  state.counters["peak_MB"] = peak_megabytes();
  state.SetLabel(label(spec));
}

template <class Measure>
void on_random_pairs(benchmark::State& state, Measure measure) {
  const FabricSpec spec = spec_of(state);
  const Fabric fabric(spec);
  std::uint64_t random = 1;
  const auto any_gpu = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return isthmus::GpuId{static_cast<std::uint32_t>((random >> 33) % fabric.gpu_count())};
  };
  for (auto _ : state) {
    const isthmus::GpuId from = any_gpu(), to = any_gpu();
    benchmark::DoNotOptimize(measure(fabric, from, to));
  }
  state.SetLabel(label(spec));
}

void route(benchmark::State& state) {
  on_random_pairs(state, [](const Fabric& fabric, auto from, auto to) { return fabric.route(from, to); });
}

void switch_hops(benchmark::State& state) {
  on_random_pairs(state,
                  [](const Fabric& fabric, auto from, auto to) { return fabric.switch_hops(from, to); });
}

void expand(benchmark::State& state) {
  const FabricSpec spec = spec_of(state);
  const Fabric fabric(spec);
  reset_peak();
  for (auto _ : state) benchmark::DoNotOptimize(fabric.graph().edges.data());
  state.counters["peak_MB"] = peak_megabytes();
  state.SetLabel(label(spec));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"hosts", "kind"});
  for (const std::int64_t kind : {dgx, rack, dgx_hashed, dgx_relayed}) {
    for (const std::int64_t hosts : {64, 1024, kind == rack ? 32'760 : 16'384}) bench->Args({hosts, kind});
  }
}

BENCHMARK(build)->Apply(sizes)->Unit(benchmark::kMillisecond);
BENCHMARK(route)->Apply(sizes);
BENCHMARK(switch_hops)->Apply(sizes);
BENCHMARK(expand)->Apply(sizes)->Unit(benchmark::kMillisecond);

}  // namespace
