// Plan, proof, expansion and simulation of whole refits, per policy. Run: build/release/bench/refit_bench

#include <filesystem>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace {

using namespace isthmus;

const std::filesystem::path scenarios = std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";

Refit load(const std::string& name) { return resolve(read_scenario(scenarios / (name + ".yaml"))); }

void bench_resolve(benchmark::State& state, const std::string& name) {
  for (auto _ : state) benchmark::DoNotOptimize(load(name));
}

void bench_plan(benchmark::State& state, const std::string& name, const Policy& policy) {
  const Refit refit = load(name);
  double bytes = 0;
  for (auto _ : state) {
    const PlanResult plan = policy.make(refit);
    bytes = static_cast<double>(std::get<Plan>(plan).memory().value);
  }
  state.counters["plan_bytes"] = bytes;
}

void bench_check(benchmark::State& state, const std::string& name, const Policy& policy) {
  const Refit refit = load(name);
  const Plan plan = std::get<Plan>(policy.make(refit));
  for (auto _ : state) benchmark::DoNotOptimize(check(refit, plan).proven());
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

void add_refit(const std::string& name) {
  const auto add = [](const std::string& title, auto&&... arguments) {
    benchmark::RegisterBenchmark(title.c_str(), arguments...)->Unit(benchmark::kMillisecond);
  };
  add("resolve/" + name, bench_resolve, name);
  for (const Policy& policy : policies()) {
    const std::string tail = fmt::format("{}/{}", name, policy.name);
    add("plan/" + tail, bench_plan, name, policy);
    add("check/" + tail, bench_check, name, policy);
    add("refit/" + tail, bench_simulate, name, policy);
  }
}

const bool registered = (add_refit("deepseek-v3-h100"), true);

}  // namespace
