#include "sim/simulation.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/queues.hpp"
#include "sim/account.hpp"
#include "sim/flows.hpp"
#include "sim/staging.hpp"
#include "sim/terms.hpp"

namespace isthmus::sim {
namespace {

class Run {
 public:
  Run(const Operations& operations, const Calibration& calibration, Flows& flows, const QueuePlan& plan,
      bool log_events, bool log_phases)
      : flows_(flows),
        plan_(plan),
        queues_(plan),
        progress_(operations.list.size()),
        enqueue_{std::llround(calibration.enqueue_time.value * 1e12)} {
    timeline_.spans.resize(operations.list.size());
    if (log_events) events_.reserve(2 * operations.list.size());
    logs_ = log_events;
    if (log_phases) phase_begins_.resize(phases * operations.list.size());
  }

  /// All events in the order of time, where they are wanted.
  const std::vector<Event>& events() const { return events_; }
  /// When each phase of each operation began, where that is wanted.
  const std::vector<Instant>& phase_begins() const { return phase_begins_; }

  Timeline run() {
    queues_.begin(ready_);
    for (const std::uint32_t operation : ready_) make_ready(operation, Span::no_cause);
    for (Instant when; next_instant(when);) step(when);
    ISTHMUS_ASSERT(queues_.waiting() == 0, "{} operations wait for each other", queues_.waiting());
    return std::move(timeline_);
  }

 private:
  static constexpr std::uint32_t no_operation = 0xFFFFFFFF;
  static constexpr std::size_t phases = std::tuple_size_v<decltype(Demand::phases)>;
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
    while (progress_[operation].phase < phases) {
      if (!phase_begins_.empty()) phase_begins_[operation * phases + progress_[operation].phase] = now_;
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
  std::vector<Instant> phase_begins_;  // by operation and phase
  bool logs_ = false;
  Duration enqueue_;
  Instant now_;
};

/// When the last flow of each operation began; its end where it has none.
std::vector<Instant> last_flows(const FinishedRun& run) {
  std::vector<Instant> begins;
  begins.reserve(run.demands.size());
  for (std::uint32_t i = 0; i < run.demands.size(); ++i) {
    begins.push_back(run.timeline.spans[i].end);
    const auto& phases = run.demands[i].phases;
    for (std::size_t p = 0; p < phases.size(); ++p) {
      if (phases[p].flow_class != Demand::none) begins.back() = run.phase_begin(i, p);
    }
  }
  return begins;
}

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

Prediction Simulator::run(const Calibration& calibration, Detail detail) const {
  const Refit& refit = prepared_->refit;
  const Operations& operations = prepared_->operations;
  Flows flows = build_flows(refit, operations, prepared_->routes, calibration);
  Prediction prediction;
  const Staging& staging = prepared_->staging;
  const bool all = detail == Detail::terms;
  Run run(operations, calibration, flows, prepared_->queues, !staging.empty(), all);
  prediction.timeline = run.run();
  if (!staging.empty()) prediction.peak_staging = staging.peak(prediction.timeline, run.events());
  prediction.timeline.link_bytes = prepared_->routes.link_bytes();
  account(refit, operations, calibration, flows.work, prediction);
  if (all) {
    const FinishedRun finished{
        refit,         operations,          prepared_->routes, calibration, prepared_->queues,
        flows.demands, prediction.timeline, run.phase_begins()};
    prediction.terms = critical_terms(finished);
    prediction.flow_begins = last_flows(finished);
    prediction.work = std::move(flows.work);
  }
  return prediction;
}

Prediction simulate(const Refit& refit, const Operations& operations, const Calibration& calibration,
                    Detail detail) {
  return Simulator(refit, operations).run(calibration, detail);
}

}  // namespace isthmus::sim
