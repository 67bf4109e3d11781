#include "sim/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/queues.hpp"
#include "sim/account.hpp"
#include "sim/flows.hpp"
#include "sim/quotient.hpp"
#include "sim/staging.hpp"
#include "sim/terms.hpp"

namespace isthmus::sim {
namespace {

class Run {
 public:
  Run(const Calibration& calibration, Fluid& fluid, const std::vector<Demand>& demands, const QueuePlan& plan,
      bool log_events, bool log_phases)
      : fluid_(fluid),
        demands_(demands),
        plan_(plan),
        queues_(plan),
        progress_(demands.size()),
        enqueue_{std::llround(calibration.enqueue_time.value * 1e12)} {
    timeline_.spans.resize(demands.size());
    if (log_events) events_.reserve(2 * demands.size());
    logs_ = log_events;
    if (log_phases) phase_begins_.resize(phases * demands.size());
  }

  /// All events in the order of time, where they are wanted.
  std::vector<Event>& events() { return events_; }
  /// When each phase of each operation began, where that is wanted.
  std::vector<Instant>& phase_begins() { return phase_begins_; }

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
    const bool ends = fluid_.next_end(when);
    if (timers_.empty()) return ends;
    if (!ends || timers_.begin()->first < when) when = timers_.begin()->first;
    return true;
  }

  /// Everything that happens at one instant, then one solve.
  void step(Instant when) {
    now_ = when;
    ended_.clear();
    fluid_.advance(when, ended_);
    for (const std::uint32_t operation : ended_) {
      if (operation != no_operation) next_phase(operation);
    }
    while (!timers_.empty() && timers_.begin()->first == when) {
      std::uint32_t operation = timers_.begin()->second.first;
      timers_.erase(timers_.begin());
      latest_ = timers_.end();
      for (; operation != no_operation; operation = progress_[operation].later) next_phase(operation);
    }
    fluid_.solve();
  }

  void make_ready(std::uint32_t operation, std::uint32_t cause) {
    timeline_.spans[operation].ready = now_;
    timeline_.spans[operation].cause = cause;
    if (logs_) events_.push_back({operation, false});
    const Duration delay = demands_[operation].delay + enqueue_ * plan_.group_size(operation);
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
    const Demand& demand = demands_[operation];
    while (progress_[operation].phase < phases) {
      if (!phase_begins_.empty()) phase_begins_[operation * phases + progress_[operation].phase] = now_;
      const Demand::Phase& phase = demand.phases[progress_[operation].phase++];
      if (phase.flow_class == Demand::none) continue;
      fluid_.start(phase.flow_class, phase.amount, operation);
      for (std::uint32_t f = 1; f < phase.flows; ++f) {
        fluid_.start(phase.flow_class, phase.amount, no_operation);  // ends when the first one does
      }
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

  Fluid& fluid_;
  const std::vector<Demand>& demands_;
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

/// What a run finds out, for each operation.
struct Ran {
  Timeline timeline;
  std::vector<Event> events;          // in the order of time
  std::vector<Instant> phase_begins;  // by operation and phase
};

/// Along the critical path, the members of parts that held operations back; elsewhere any member of the part
/// is named, which ended at the same time.
void find_causes(const Operations& operations, const QueuePlan& queues, const Parts& symmetric,
                 Timeline& timeline) {
  const std::vector<std::uint32_t> path = timeline.critical_path();
  if (path.empty()) return;
  for (std::uint32_t i = path.back(); timeline.spans[i].cause != Span::no_cause;
       i = timeline.spans[i].cause) {
    const std::uint32_t part = symmetric.part_of[timeline.spans[i].cause];
    const auto before = operations.dependencies(operations.list[i]);
    const auto cause = std::find_if(before.begin(), before.end(),
                                    [&](std::uint32_t other) { return symmetric.part_of[other] == part; });
    timeline.spans[i].cause = cause != before.end() ? *cause : queues.held_by(i, part, symmetric.part_of);
  }
}

/// From parts to operations.
Ran spread(const Operations& operations, const QueuePlan& queues, const Parts& symmetric, Ran parts) {
  constexpr std::size_t phases = std::tuple_size_v<decltype(Demand::phases)>;
  Ran all;
  const std::size_t count = symmetric.part_of.size();
  all.timeline.end = parts.timeline.end;
  all.timeline.spans.reserve(count);
  if (!parts.phase_begins.empty()) all.phase_begins.reserve(phases * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t part = symmetric.part_of[i];
    Span span = parts.timeline.spans[part];
    if (span.cause != Span::no_cause) span.cause = symmetric.representative[span.cause];
    all.timeline.spans.push_back(span);
    if (parts.phase_begins.empty()) continue;
    const auto begin = parts.phase_begins.begin() + static_cast<std::ptrdiff_t>(phases * part);
    all.phase_begins.insert(all.phase_begins.end(), begin, begin + phases);
  }
  find_causes(operations, queues, symmetric, all.timeline);
  if (parts.events.empty()) return all;
  std::vector<std::uint32_t> first(symmetric.representative.size() + 1, 0), members(count);
  for (const std::uint32_t part : symmetric.part_of) ++first[part + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i) members[next[symmetric.part_of[i]]++] = i;
  all.events.reserve(2 * count);
  for (const Event& event : parts.events) {
    for (std::uint32_t m = first[event.operation]; m < first[event.operation + 1]; ++m) {
      all.events.push_back({members[m], event.ended});
    }
  }
  return all;
}

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
  std::optional<Parts> parts{};
};

Simulator::Simulator(const Refit& refit, const Operations& operations, Symmetry symmetry) {
  auto prepared = std::make_unique<Prepared>(Prepared{refit, operations, Routes(refit, operations),
                                                      QueuePlan(operations), Staging(refit, operations)});
  const std::size_t least = symmetry == Symmetry::always ? 1 : 4;
  if (symmetry != Symmetry::never) {
    prepared->parts = find_parts(refit, operations, prepared->routes, prepared->queues, least);
  }
  prepared_ = std::move(prepared);
}

Simulator::~Simulator() = default;

Prediction Simulator::run(const Calibration& calibration, Detail detail) const {
  const Refit& refit = prepared_->refit;
  const Operations& operations = prepared_->operations;
  Flows flows = build_flows(refit, operations, prepared_->routes, calibration);
  Prediction prediction;
  const Staging& staging = prepared_->staging;
  const bool all = detail == Detail::terms;
  const auto run_all = [&](Fluid fluid, const std::vector<Demand>& demands, const QueuePlan& queues) {
    Run run(calibration, fluid, demands, queues, !staging.empty(), all);
    Timeline timeline = run.run();
    return Ran{std::move(timeline), std::move(run.events()), std::move(run.phase_begins())};
  };
  Ran ran;
  std::optional<PartFlows> of_parts;
  if (prepared_->parts) of_parts = part_flows(*prepared_->parts, flows);
  if (of_parts) {
    ran = run_all(std::move(of_parts->fluid), of_parts->demands, prepared_->parts->queues);
    ran = spread(operations, prepared_->queues, *prepared_->parts, std::move(ran));
    prediction.parts = prepared_->parts->representative.size();
  } else {
    ran = run_all(flows.network.fluid(), flows.demands, prepared_->queues);
    prediction.parts = operations.list.size();
  }
  prediction.timeline = std::move(ran.timeline);
  if (!staging.empty()) prediction.peak_staging = staging.peak(prediction.timeline, ran.events);
  prediction.timeline.link_bytes = prepared_->routes.link_bytes();
  account(refit, operations, calibration, flows.work, prediction);
  if (all) {
    const FinishedRun finished{
        refit,         operations,          prepared_->routes, calibration, prepared_->queues,
        flows.demands, prediction.timeline, ran.phase_begins};
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
