#pragma once
// The NCCL backend: one process that drives all GPUs it sees (CUDA_VISIBLE_DEVICES chooses), onto which the
// program's ranks are folded (hw/fold.hpp). It carries out the schedule of hw/gpu_schedule.hpp: kernels for
// copies, packing, unpacking and puts; grouped ncclSend/ncclRecv for messages between GPUs. Collectives go as
// one message per GPU, then copies within it; inside one GPU nothing is sent.
// Each launch has an event per GPU; times are those of the events after the one that began the run.
// Every byte of every target shard is compared on the device.

#include <cstdint>

#include "hw/executor.hpp"
#include "hw/gpu_schedule.hpp"

namespace isthmus::hw {

struct NcclSettings {
  std::uint32_t gpus = 0;  // 0: all that are visible
  ScheduleOptions schedule{};
};

class NcclExecutor : public Executor {
 public:
  explicit NcclExecutor(const NcclSettings& settings = {}) : settings_(settings) {}
  Measurement run(const Program& program, const RunOptions& options) override;

 private:
  NcclSettings settings_;
};

}  // namespace isthmus::hw
