#pragma once
// Runs of plans in host memory, as tests look at them: the bytes that all target shards end with, and what
// kept a plan from running. One thread makes a run a function of the seed.
// The plans may be wrong: expectations are for the caller.

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "hw/host.hpp"
#include "hw/host_memory.hpp"
#include "hw/host_run.hpp"
#include "model/error.hpp"

namespace isthmus::test {

/// Bytes of all target shards, rank after rank.
using TargetBytes = std::vector<std::byte>;

inline TargetBytes target_bytes(const Refit& refit, const Plan& plan, std::uint64_t seed = 0,
                                std::size_t threads = 1) {
  const hw::Program program(refit, plan);
  hw::HostMemory memory(program, threads);
  const hw::HostProgram host = hw::prepare_host(program);
  hw::RunOptions options;
  options.seed = seed;
  const hw::HostSettings settings{threads, {}};
  memory.prepare(0);
  (void)hw::HostRun(host, memory, options, settings).run();
  TargetBytes all;
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
    for (const hw::Shard& shard : program.targets({rank})) {
      const std::byte* const first = memory.arena({rank}) + shard.offset.value;
      all.insert(all.end(), first, first + shard.bytes.value);
    }
  }
  return all;
}

/// One replay of a plan that may be wrong: its measurement, or what refused or stopped it.
struct Replayed {
  hw::Measurement measurement;
  std::string refused;  // bytes that a rank does not have
  std::string stopped;  // by a deadline, or because nothing went on

  bool right() const { return refused.empty() && stopped.empty() && measurement.mismatch_count == 0; }
};

inline Replayed replay(const Refit& refit, const Plan& plan, std::uint64_t seed = 0,
                       std::size_t threads = 1) {
  Replayed result;
  hw::RunOptions options;
  options.seed = seed;
  options.deadline = {picoseconds_per_second};
  try {
    const hw::Program program(refit, plan);
    result.measurement = hw::HostExecutor({threads, {}}).run(program, options);
  } catch (const InputError& error) {
    result.refused = error.what();
  } catch (const SystemError& error) {
    result.stopped = error.what();
  }
  return result;
}

}  // namespace isthmus::test
