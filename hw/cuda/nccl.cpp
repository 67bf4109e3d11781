#include "hw/cuda/nccl.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "hw/cuda/communicators.hpp"
#include "hw/cuda/gpus.hpp"
#include "hw/cuda/session.hpp"
#include "hw/cuda/watchdog.hpp"
#include "hw/gpu_timeline.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

constexpr std::chrono::seconds close_deadline{30};

void note_sizes(const Program& program, const GpuSchedule& schedule, Measurement& measurement) {
  measurement.moved = {schedule.crossing_bytes};
  for (std::size_t r = 0; r < program.ranks(); ++r) {
    for (const Shard& shard : program.targets({static_cast<std::uint32_t>(r)}))
      measurement.verified += shard.bytes;
  }
  for (const std::int64_t bytes : schedule.arena_bytes) measurement.memory += Bytes{bytes};
}

}  // namespace

NcclExecutor::NcclExecutor(const NcclSettings& settings)
    : settings_(settings), communicators_(std::make_unique<Communicators>()) {}

NcclExecutor::~NcclExecutor() {
  try {
    close();
  } catch (const SystemError&) {  // all results are there; what is left, the end of the process gives back
  }
}

void NcclExecutor::close() {
  Watchdog watchdog(close_deadline);
  watchdog.set_stop([this] { communicators_->abort(); });
  watchdog.progress("give-back of NCCL communicators");
  try {
    communicators_->close();
  } catch (...) {
    watchdog.set_stop({});
    throw;
  }
  watchdog.set_stop({});
}

Measurement NcclExecutor::run(const Program& program, const RunOptions& options) {
  Measurement measurement;
  const std::uint32_t gpus = settings_.gpus == 0 ? visible_gpus() : std::min(settings_.gpus, visible_gpus());
  measurement.backend = "nccl";
  measurement.device = describe_gpus(gpus);
  const GpuSchedule schedule = make_schedule(program, gpus, settings_.schedule);
  measurement.gpus = gpus;
  measurement.launches = schedule.launches.size();
  note_sizes(program, schedule, measurement);
  measurement.passes_needed = Codes(program).passes();
  if (options.graph) {
    // Branches of a graph may start in any order, on each GPU in another one: then exchanges of two
    // communicators could wait for each other. NCCL can keep the captured order; it reads this once.
    ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    try {
      run_session(program, schedule, options, true, measurement);
      return measurement;
    } catch (const CaptureRefused& refused) {
      measurement.graph_refused = refused.what();
    }
  }
  run_session(program, schedule, options, false, measurement);
  return measurement;
}

void NcclExecutor::run_session(const Program& program, const GpuSchedule& schedule, const RunOptions& options,
                               bool graph, Measurement& measurement) {
  if (!communicators_->serves(schedule.folding.gpus, schedule.lane_streams)) {
    close();
    communicators_ = std::make_unique<Communicators>();
  }
  GpuSession session(program, schedule, std::chrono::nanoseconds(options.deadline.value / 1000),
                     *communicators_);
  if (graph) session.capture();
  measurement.graph = graph;
  const std::uint32_t passes = measurement.passes_needed;
  const std::uint32_t runs = run_count(options, passes);
  for (std::uint32_t r = 0; r < runs; ++r) {
    const std::uint32_t pass = r % passes;
    session.prepare(pass);
    const std::vector<Instant> ends = session.execute();
    if (is_timed(options, r)) add_repetition(measurement, timeline_of(program, schedule, ends));
    if (options.verify) session.judge(pass, options.most_mismatches, measurement);
  }
  measurement.passes = options.verify ? std::min(runs, passes) : 0;
  session.close();
}

}  // namespace isthmus::hw
