// How long a fabric takes to build and a route to be found. The design asks for 16,384 hosts in two seconds
// and a route in a microsecond.

#include <benchmark/benchmark.h>

#include "model/fabric.hpp"
#include "model/fabric_graph.hpp"

namespace {

using isthmus::Fabric;
using isthmus::FabricSpec;

const char* preset(const benchmark::State& state) {
  return state.range(1) == 0 ? "dgx-h100-superpod" : "gb200-nvl72";
}

void build(benchmark::State& state) {
  const FabricSpec spec{preset(state), static_cast<int>(state.range(0)), {}, {}};
  for (auto _ : state) benchmark::DoNotOptimize(Fabric(spec).links().data());
  state.SetLabel(preset(state));
}

void route(benchmark::State& state) {
  const Fabric fabric({preset(state), static_cast<int>(state.range(0)), {}, {}});
  std::uint64_t random = 1;
  const auto any_gpu = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return isthmus::GpuId{static_cast<std::uint32_t>((random >> 33) % fabric.gpu_count())};
  };
  for (auto _ : state) benchmark::DoNotOptimize(fabric.route(any_gpu(), any_gpu()));
  state.SetLabel(preset(state));
}

void expand(benchmark::State& state) {
  const Fabric fabric({preset(state), static_cast<int>(state.range(0)), {}, {}});
  for (auto _ : state) benchmark::DoNotOptimize(fabric.graph().edges.data());
  state.SetLabel(preset(state));
}

BENCHMARK(build)->ArgsProduct({{64, 1024, 16384}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(route)->ArgsProduct({{64, 16384}, {0, 1}});
BENCHMARK(expand)->ArgsProduct({{64, 16384}, {0, 1}})->Unit(benchmark::kMillisecond);

}  // namespace
