#include "sim/simulation.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "model/error.hpp"
#include "sim/account.hpp"
#include "sim/flows.hpp"
#include "sim/queues.hpp"

namespace isthmus::sim {
namespace {

class Run {
 public:
  Run(const Operations& operations, const Calibration& calibration, Flows& flows, Queues queues)
      : flows_(flows),
        queues_(std::move(queues)),
        phase_(operations.list.size(), 0),
        enqueue_{std::llround(calibration.enqueue_time.value * 1e12)} {
    timeline_.spans.resize(operations.list.size());
  }

  Timeline run() {
    queues_.begin(ready_);
    for (const std::uint32_t operation : ready_) make_ready(operation, Span::no_cause);
    for (Instant when; next_instant(when);) step(when);
    ISTHMUS_ASSERT(queues_.waiting() == 0, "{} operations wait for each other", queues_.waiting());
    return std::move(timeline_);
  }

 private:
  bool next_instant(Instant& when) {
    const bool ends = flows_.fluid.next_end(when);
    if (timers_.empty()) return ends;
    if (!ends || timers_.begin()->first < when) when = timers_.begin()->first;
    return true;
  }

  /// Everything that happens at one instant, then one solve.
  void step(Instant when) {
    now_ = when;
    ended_.clear();
    flows_.fluid.advance(when, ended_);
    for (const std::uint32_t operation : ended_) next_phase(operation);
    while (!timers_.empty() && timers_.begin()->first == when) {
      const std::vector<std::uint32_t> begins = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      for (const std::uint32_t operation : begins) next_phase(operation);
    }
    flows_.fluid.solve();
  }

  void make_ready(std::uint32_t operation, std::uint32_t cause) {
    timeline_.spans[operation].ready = now_;
    timeline_.spans[operation].cause = cause;
    const Duration delay = flows_.demands[operation].delay + enqueue_ * queues_.group_size(operation);
    timers_[now_ + delay].push_back(operation);
  }

  void next_phase(std::uint32_t operation) {
    const Demand& demand = flows_.demands[operation];
    while (phase_[operation] < demand.phases.size()) {
      const Demand::Phase& phase = demand.phases[phase_[operation]++];
      if (phase.flow_class == Demand::none) continue;
      flows_.fluid.start(phase.flow_class, phase.amount, operation);
      return;
    }
    complete(operation);
  }

  void complete(std::uint32_t operation) {
    timeline_.spans[operation].end = now_;
    timeline_.end = now_;
    ready_.clear();
    queues_.complete(operation, ready_);
    for (const std::uint32_t next : ready_) make_ready(next, operation);
  }

  Flows& flows_;
  Queues queues_;
  Timeline timeline_;
  std::vector<std::uint8_t> phase_;                       // the next phase of each operation
  std::map<Instant, std::vector<std::uint32_t>> timers_;  // operations whose first phase begins at an instant
  std::vector<std::uint32_t> ended_, ready_;
  Duration enqueue_;
  Instant now_;
};

}  // namespace

struct Simulator::Prepared {
  const Refit& refit;
  const Operations& operations;
  Routes routes;
  Queues queues;
};

Simulator::Simulator(const Refit& refit, const Operations& operations)
    : prepared_(std::make_unique<Prepared>(
          Prepared{refit, operations, Routes(refit, operations), Queues(operations)})) {}

Simulator::~Simulator() = default;

Prediction Simulator::run(const Calibration& calibration) const {
  const Refit& refit = prepared_->refit;
  const Operations& operations = prepared_->operations;
  Flows flows = build_flows(refit, operations, prepared_->routes, calibration);
  Prediction prediction;
  prediction.timeline = Run(operations, calibration, flows, prepared_->queues).run();
  prediction.timeline.link_bytes = prepared_->routes.link_bytes();
  account(refit, operations, calibration, flows.work, prediction);
  return prediction;
}

Prediction simulate(const Refit& refit, const Operations& operations, const Calibration& calibration) {
  return Simulator(refit, operations).run(calibration);
}

}  // namespace isthmus::sim
