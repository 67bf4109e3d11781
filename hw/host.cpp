#include "hw/host.hpp"

#include <thread>

#include <fmt/format.h>

#include "hw/host_memory.hpp"
#include "hw/host_run.hpp"

namespace isthmus::hw {

Measurement HostExecutor::run(const Program& program, const RunOptions& options) {
  const std::size_t threads = thread_count(settings_, program.ranks());
  HostMemory memory(program, threads);
  const HostProgram host = prepare_host(program);
  Measurement measurement;
  measurement.backend = "host";
  measurement.device = fmt::format("{} threads", threads);
  measurement.moved = host.between_ranks;
  measurement.memory = program.memory();
  measurement.passes_needed = memory.passes();
  const std::uint32_t runs = run_count(options, memory.passes());
  for (std::uint32_t r = 0; r < runs; ++r) {
    memory.prepare(r);
    Timeline timeline = HostRun(host, memory, options, settings_).run();
    if (is_timed(options, r)) add_repetition(measurement, std::move(timeline));
    if (!options.verify) continue;
    memory.judge(r, options.most_mismatches, measurement);
    measurement.passes = std::min(r + 1, memory.passes());
  }
  return measurement;
}

}  // namespace isthmus::hw
