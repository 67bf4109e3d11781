#pragma once
// The NCCL backend: one process that drives all GPUs it sees (CUDA_VISIBLE_DEVICES chooses), onto which the
// program's ranks are folded (hw/fold.hpp). It carries out the schedule of hw/gpu_schedule.hpp: kernels for
// copies, packing, unpacking and puts; grouped ncclSend/ncclRecv for messages between GPUs. Collectives go
// as one message per GPU, then copies within it; inside one GPU nothing is sent. Each launch has an event
// per GPU; times are those of the events after the one that began the run. Launches are issued one by one,
// or (RunOptions::graph) captured once and launched as a graph, unless that is refused. Every byte of every
// target shard is compared on the device. Communicators outlive a run: opening them takes seconds, and the
// next program wants the same.

#include <cstdint>
#include <memory>

#include "hw/executor.hpp"
#include "hw/gpu_schedule.hpp"

namespace isthmus::hw {

struct NcclSettings {
  std::uint32_t gpus = 0;  // 0: all that are visible
  ScheduleOptions schedule{};
};

class Communicators;

class NcclExecutor : public Executor {
 public:
  explicit NcclExecutor(const NcclSettings& settings = {});
  ~NcclExecutor() override;
  NcclExecutor(const NcclExecutor&) = delete;
  NcclExecutor& operator=(const NcclExecutor&) = delete;

  Measurement run(const Program& program, const RunOptions& options) override;

 private:
  void run_session(const Program& program, const GpuSchedule& schedule, const RunOptions& options, bool graph,
                   Measurement& measurement);
  /// Gives the communicators back while a watchdog looks on.
  void close();

  NcclSettings settings_;
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace isthmus::hw
