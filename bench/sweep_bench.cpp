// How many candidates of the size of DeepSeek-V3 a sweep decides per second: enumerated with their bounds,
// and predicted, on one core. Wanted: 200 decided per second and core, of which 5 are predicted.

#include <filesystem>

#include <benchmark/benchmark.h>

#include "report/sweep.hpp"
#include "report/sweep_crew.hpp"

namespace {

using namespace isthmus;

/// 256 + 256 GPUs.
SweepSpace deepseek(std::vector<std::string> policies) {
  SweepSpace space = parse_sweep_space(
      "name: deepseek-v3\n"
      "model: {config: models/deepseek-v3.json}\n"
      "fabric: {preset: dgx-h100-superpod, hosts: 64, nic_bandwidth: 400 Gbit/s}\n"
      "train: {gpus: 256, tp: [1, 2], ep: [8, 16, 32], etp: 1, pp: [4, 8, 16]}\n"
      "generate: {gpus: 256, tp: [16, 32], ep: [1, 16, 32]}\n"
      "placements: [contiguous, interleaved, co-racked]\n"
      "refit: {bulk: ffn, streams: [1, 2, 4, 8]}\n"
      "calibrations: h100-ib400\n"
      "memory: {gpu: 141 GB, kv_cache: 20 GB, activations: 20 GB}\n",
      std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios/sweep.yaml");
  space.policies = std::move(policies);
  return space;
}

void bm_enumerate(benchmark::State& state) {
  const SweepSpace space = deepseek({"balanced", "striped", "m2n-uniform", "gather-broadcast"});
  std::size_t candidates = 0;
  for ([[maybe_unused]] auto each : state) {
    candidates += report::sweep_candidates(space, space.policies).list.size();
  }
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(candidates), benchmark::Counter::kIsRate);
}
BENCHMARK(bm_enumerate)->Unit(benchmark::kMillisecond);

void bm_predict(benchmark::State& state, const char* policy) {
  const SweepSpace space = deepseek({policy});
  const report::SweepCandidates candidates = report::sweep_candidates(space, space.policies);
  std::size_t next = 0, predicted = 0;
  for ([[maybe_unused]] auto each : state) {
    const std::size_t candidate = next++ * 7 % candidates.list.size();
    benchmark::DoNotOptimize(report::sweep_outcome(space, candidates, static_cast<std::uint32_t>(candidate)));
    ++predicted;
  }
  state.counters["predicted/s"] =
      benchmark::Counter(static_cast<double>(predicted), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(bm_predict, balanced, "balanced")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bm_predict, striped, "striped")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bm_predict, gather_broadcast, "gather-broadcast")->Unit(benchmark::kMillisecond);

}  // namespace
