#include "sim/simulation.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/queues.hpp"
#include "sim/account.hpp"
#include "sim/flows.hpp"
#include "sim/staging.hpp"

namespace isthmus::sim {
namespace {

class Run {
 public:
  Run(const Operations& operations, const Calibration& calibration, Flows& flows, const QueuePlan& plan,
      bool log_events)
      : flows_(flows),
        plan_(plan),
        queues_(plan),
        progress_(operations.list.size()),
        enqueue_{std::llround(calibration.enqueue_time.value * 1e12)} {
    timeline_.spans.resize(operations.list.size());
    if (log_events) events_.reserve(2 * operations.list.size());
    logs_ = log_events;
  }

  /// All events in the order of time, where they are wanted.
  const std::vector<Event>& events() const { return events_; }

  Timeline run() {
    queues_.begin(ready_);
    for (const std::uint32_t operation : ready_) make_ready(operation, Span::no_cause);
    for (Instant when; next_instant(when);) step(when);
    ISTHMUS_ASSERT(queues_.waiting() == 0, "{} operations wait for each other", queues_.waiting());
    return std::move(timeline_);
  }

 private:
  static constexpr std::uint32_t no_operation = 0xFFFFFFFF;
  struct InFlight {
    std::uint32_t phase = 0;             // the next one
    std::uint32_t later = no_operation;  // the next operation of its timer
  };
  struct Timer {  // a list of operations
    std::uint32_t first = no_operation, last = no_operation;
  };

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
      std::uint32_t operation = timers_.begin()->second.first;
      timers_.erase(timers_.begin());
      latest_ = timers_.end();
      for (; operation != no_operation; operation = progress_[operation].later) next_phase(operation);
    }
    flows_.fluid.solve();
  }

  void make_ready(std::uint32_t operation, std::uint32_t cause) {
    timeline_.spans[operation].ready = now_;
    timeline_.spans[operation].cause = cause;
    if (logs_) events_.push_back({operation, false});
    const Duration delay = flows_.demands[operation].delay + enqueue_ * plan_.group_size(operation);
    const Instant when = now_ + delay;
    progress_[operation].later = no_operation;
    if (latest_ != timers_.end() && latest_->first == when) {
      progress_[latest_->second.last].later = operation;
      latest_->second.last = operation;
      return;
    }
    const auto [timer, is_new] = timers_.try_emplace(when, Timer{operation, operation});
    latest_ = timer;
    if (is_new) return;
    progress_[timer->second.last].later = operation;
    timer->second.last = operation;
  }

  void next_phase(std::uint32_t operation) {
    const Demand& demand = flows_.demands[operation];
    while (progress_[operation].phase < demand.phases.size()) {
      const Demand::Phase& phase = demand.phases[progress_[operation].phase++];
      if (phase.flow_class == Demand::none) continue;
      flows_.fluid.start(phase.flow_class, phase.amount, operation);
      return;
    }
    complete(operation);
  }

  void complete(std::uint32_t operation) {
    timeline_.spans[operation].end = now_;
    timeline_.end = now_;
    if (logs_) events_.push_back({operation, true});
    ready_.clear();
    queues_.complete(operation, ready_);
    for (const std::uint32_t next : ready_) make_ready(next, operation);
  }

  Flows& flows_;
  const QueuePlan& plan_;
  Queues queues_;
  Timeline timeline_;
  std::vector<InFlight> progress_;   // by operation
  std::map<Instant, Timer> timers_;  // operations whose first phase begins at an instant
  std::map<Instant, Timer>::iterator latest_ = timers_.end();
  std::vector<std::uint32_t> ended_, ready_;
  std::vector<Event> events_;
  bool logs_ = false;
  Duration enqueue_;
  Instant now_;
};

}  // namespace

struct Simulator::Prepared {
  const Refit& refit;
  const Operations& operations;
  Routes routes;
  QueuePlan queues;
  Staging staging;
};

Simulator::Simulator(const Refit& refit, const Operations& operations)
    : prepared_(std::make_unique<Prepared>(Prepared{refit, operations, Routes(refit, operations),
                                                    QueuePlan(operations), Staging(refit, operations)})) {}

Simulator::~Simulator() = default;

Prediction Simulator::run(const Calibration& calibration) const {
  const Refit& refit = prepared_->refit;
  const Operations& operations = prepared_->operations;
  Flows flows = build_flows(refit, operations, prepared_->routes, calibration);
  Prediction prediction;
  const Staging& staging = prepared_->staging;
  Run run(operations, calibration, flows, prepared_->queues, !staging.empty());
  prediction.timeline = run.run();
  if (!staging.empty()) prediction.peak_staging = staging.peak(prediction.timeline, run.events());
  prediction.timeline.link_bytes = prepared_->routes.link_bytes();
  account(refit, operations, calibration, flows.work, prediction);
  return prediction;
}

Prediction simulate(const Refit& refit, const Operations& operations, const Calibration& calibration) {
  return Simulator(refit, operations).run(calibration);
}

}  // namespace isthmus::sim
