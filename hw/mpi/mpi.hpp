#pragma once
// The MPI backend: ranks of an Open MPI job with host memory. Every process makes the same plan and executes
// its part of it; all end with the same measurement, and process 0 prints it. An operation ends when its last
// process has ended it; each process counts from when it knew that all were there, so clocks of hosts need
// not agree, and a timeline is true up to the time that a small message takes.

#include <functional>
#include <memory>

#include "hw/executor.hpp"
#include "hw/mpi/run.hpp"
#include "hw/mpi/world.hpp"

namespace isthmus::hw {

struct MpiSettings {
  MpiRun::Watch watch{};
};

class MpiExecutor : public Executor {
 public:
  explicit MpiExecutor(MpiSettings settings = {}) : settings_(std::move(settings)) {}
  Measurement run(const Program& program, const RunOptions& options) override;
  bool reports() const override { return world_ == nullptr || world_->process() == 0; }

 private:
  MpiSettings settings_;
  std::unique_ptr<MpiWorld> world_;  // from the first run on
};

}  // namespace isthmus::hw
