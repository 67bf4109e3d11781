// Plan, proof, expansion and simulation of refits, per policy. Run: build/release/bench/refit_bench
// Peaks of memory are those of the whole process so far: ask for one benchmark at a time.

#include <filesystem>
#include <string>
#include <tuple>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/bound.hpp"
#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace {

using namespace isthmus;

const std::filesystem::path scenarios = std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";

/// One tensor from 1,024 to 1,024 GPUs, rows to columns; 32 replicas at the target or on both sides, or none.
std::string one_tensor(int source_replicas, int target_replicas) {
  return fmt::format(
      "tensor: {{shape: [8192, 8192], dtype: bf16}}\n"
      "source: {{mesh: [{}, {}], first_rank: 0, placements: [replicated, shard(0)]}}\n"
      "target: {{mesh: [{}, {}], first_rank: 1024, placements: [replicated, shard(1)]}}\n"
      "fabric: {{preset: dgx-h100-superpod, hosts: 256}}\n",
      source_replicas, 1024 / source_replicas, target_replicas, 1024 / target_replicas);
}

Refit load(const std::string& name) {
  for (const auto& [reshard, source, target] :
       {std::tuple{"reshard-32-to-32-replicas", 32, 32}, std::tuple{"reshard-to-32-replicas", 1, 32},
        std::tuple{"reshard-without-replicas", 1, 1}}) {
    if (name == reshard)
      return resolve(parse_scenario(one_tensor(source, target), scenarios / (name + ".yaml")));
  }
  return resolve(read_scenario(scenarios / (name + ".yaml")));
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

void bench_resolve(benchmark::State& state, const std::string& name) {
  for (auto _ : state) benchmark::DoNotOptimize(load(name));
}

void bench_bound(benchmark::State& state, const std::string& name) {
  const Refit refit = load(name);
  for (auto _ : state) benchmark::DoNotOptimize(lower_bound(refit).time);
}

void bench_plan(benchmark::State& state, const std::string& name, const Policy& policy) {
  const Refit refit = load(name);
  double bytes = 0;
  for (auto _ : state) {
    const PlanResult plan = policy.make(refit);
    if (const auto* refused = std::get_if<Refused>(&plan))
      return state.SkipWithError(refused->reason.c_str());
    bytes = static_cast<double>(std::get<Plan>(plan).memory().value);
  }
  state.counters["plan_bytes"] = bytes;
  state.counters["peak_megabytes"] = peak_megabytes();
}

void bench_check(benchmark::State& state, const std::string& name, const Policy& policy) {
  const Refit refit = load(name);
  const PlanResult result = policy.make(refit);
  if (const auto* refused = std::get_if<Refused>(&result))
    return state.SkipWithError(refused->reason.c_str());
  const Plan& plan = std::get<Plan>(result);
  for (auto _ : state) {
    if (!check(refit, plan).proven()) return state.SkipWithError("not proven");
  }
  state.counters["peak_megabytes"] = peak_megabytes();
  state.counters["steps"] = static_cast<double>(plan.step_count());
}

void bench_simulate(benchmark::State& state, const std::string& name, const Policy& policy) {
  const Refit refit = load(name);
  const Operations operations = expand(refit, std::get<Plan>(policy.make(refit)));
  const Calibration calibration = read_calibration("h100-ib400", scenarios);
  const sim::Simulator simulator(refit, operations);
  double makespan = 0;
  for (auto _ : state) makespan = seconds(simulator.run(calibration).time);
  state.counters["makespan_seconds"] = makespan;
  state.counters["flows_per_second"] = benchmark::Counter(static_cast<double>(operations.list.size()),
                                                          benchmark::Counter::kIsIterationInvariantRate);
}

template <class... Arguments>
void add(const std::string& title, Arguments... arguments) {
  benchmark::RegisterBenchmark(title.c_str(), arguments...)->Unit(benchmark::kMillisecond);
}

void add_planning(const std::string& name) {
  add("bound/" + name, bench_bound, name);
  for (const Policy& policy : policies()) {
    add(fmt::format("plan/{}/{}", name, policy.name), bench_plan, name, policy);
    add(fmt::format("check/{}/{}", name, policy.name), bench_check, name, policy);
  }
}

bool add_all() {
  const std::string refit = "deepseek-v3-h100";
  add("resolve/" + refit, bench_resolve, refit);
  for (const char* name : {"deepseek-v3-h100", "kimi-k3-gb200-2048", "reshard-32-to-32-replicas",
                           "reshard-to-32-replicas", "reshard-without-replicas"})
    add_planning(name);
  for (const Policy& policy : policies())
    add(fmt::format("refit/{}/{}", refit, policy.name), bench_simulate, refit, policy);
  return true;
}

const bool registered = add_all();

}  // namespace
