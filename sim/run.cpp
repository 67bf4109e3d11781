#include "sim/run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::sim {

Run::Run(Fluid& fluid, const std::vector<Demand>& demands, const QueuePlan& plan, Duration enqueue,
         RunLogs logs, const Schedule& schedule, std::size_t classes, const Operations& operations)
    : fluid_(fluid),
      demands_(demands),
      plan_(plan),
      schedule_(schedule),
      operations_(operations),
      queues_(plan),
      progress_(demands.size()),
      logs_(logs.events),
      enqueue_(enqueue) {
  timeline_.spans.resize(demands.size());
  if (logs_) events_.reserve(2 * demands.size());
  if (logs.phases) phase_begins_.resize(phases * demands.size());
  if (schedule.none()) return;
  states_.resize(demands.size());
  carriers_.assign(demands.size(), Demand::none);
  furthest_.resize(demands.size());
  moved_by_class_.resize(classes);
}

Ran Run::run() {
  start_background();
  change_capacities();
  queues_.begin(ready_);
  for (const std::uint32_t operation : ready_) make_ready(operation, Span::no_cause);
  for (Instant when; next_instant(when);) step(when);
  Ran ran;
  finish(ran);
  ISTHMUS_ASSERT(ran.outcome.stopped() || queues_.waiting() == 0, "{} operations wait for each other",
                 queues_.waiting());
  ran.timeline = std::move(timeline_);
  ran.events = std::move(events_);
  ran.phase_begins = std::move(phase_begins_);
  return ran;
}

bool Run::next_instant(Instant& when) {
  const bool ends = fluid_.next_end(when);
  if (!ends && timers_.empty()) return false;  // later faults meet nothing
  if (!timers_.empty() && (!ends || timers_.top().when < when)) when = timers_.top().when;
  if (begun_ < schedule_.periods.size()) when = std::min(when, schedule_.periods[begun_].begins);
  return true;
}

/// Everything that happens at one instant, then one solve.
void Run::step(Instant when) {
  now_ = when;
  ended_.clear();
  fluid_.advance(when, ended_);
  for (const std::uint32_t operation : ended_) {
    if (operation != no_operation) next_phase(operation);
  }
  change_capacities();
  while (!timers_.empty() && timers_.top().when == when) {
    std::uint32_t operation = timers_.top().first;
    timers_.pop();
    last_of_latest_ = no_operation;
    while (operation != no_operation) {
      const std::uint32_t later = progress_[operation].later;  // an attempt that fails is listed anew
      next_phase(operation);
      operation = later;
    }
  }
  fluid_.solve();
}

void Run::make_ready(std::uint32_t operation, std::uint32_t cause) {
  timeline_.spans[operation].ready = now_;
  timeline_.spans[operation].cause = cause;
  if (logs_) events_.push_back({operation, false});
  wake_at(now_ + (demands_[operation].delay + enqueue_ * plan_.group_size(operation)), operation);
}

void Run::wake_at(Instant when, std::uint32_t operation) {
  progress_[operation].later = no_operation;
  if (last_of_latest_ != no_operation && latest_ == when) {
    progress_[last_of_latest_].later = operation;
  } else {
    timers_.push({when, next_sequence_++, operation});
    latest_ = when;
  }
  last_of_latest_ = operation;
}

void Run::next_phase(std::uint32_t operation) {
  const Demand& demand = demands_[operation];
  while (progress_[operation].phase < phases) {
    if (!phase_begins_.empty()) phase_begins_[operation * phases + progress_[operation].phase] = now_;
    const Demand::Phase& phase = demand.phases[progress_[operation].phase++];
    if (phase.flow_class == Demand::none) continue;
    std::uint32_t flow_class = phase.flow_class;
    if (!states_.empty()) {
      states_[operation] = State::started;
      flow_class = usable(flow_class, begun_);
      if (flow_class == Demand::none) return fail_attempt(operation, phase.amount);
      if (flow_class != phase.flow_class) ++outcome_.detours;
      if (phase.use == Demand::Use::route) carriers_[operation] = flow_class;
    }
    fluid_.start(flow_class, phase.amount, operation);
    for (std::uint32_t f = 1; f < phase.flows; ++f) {
      fluid_.start(flow_class, phase.amount, no_operation);  // ends when the first one does
    }
    return;
  }
  complete(operation);
}

void Run::complete(std::uint32_t operation) {
  timeline_.spans[operation].end = now_;
  timeline_.end = now_;
  if (logs_) events_.push_back({operation, true});
  if (!states_.empty()) {
    states_[operation] = State::complete;
    const std::uint32_t carrier = carriers_[operation];
    if (carrier != Demand::none) moved_by_class_[carrier] += operations_.list[operation].bytes;
  }
  ready_.clear();
  queues_.complete(operation, ready_);
  for (const std::uint32_t next : ready_) make_ready(next, operation);
}

void Run::start_background() {
  for (const Schedule::Background& load : schedule_.background) {
    fluid_.start_endless(load.flow_class, load.flows);
  }
}

/// Begins the periods that are due, and fails what they take down.
void Run::change_capacities() {
  while (begun_ < schedule_.periods.size() && schedule_.periods[begun_].begins <= now_) {
    const Schedule::Period& period = schedule_.periods[begun_++];
    for (const Schedule::Capacity& change : period.capacities) {
      fluid_.set_capacity(change.resource, change.capacity);
    }
    cancelled_.clear();
    std::vector<char> background(period.down.size(), 0);
    for (const Schedule::Background& load : schedule_.background) background[load.flow_class] = 1;
    for (std::uint32_t c = 0; c < period.down.size(); ++c) {
      if (period.down[c] != 0 && background[c] == 0) fluid_.cancel(c, cancelled_);
    }
    for (const Fluid::Cancelled& flow : cancelled_) fail_attempt(flow.tag, flow.left);
  }
}

/// `period`: how many have begun then.
std::uint32_t Run::usable(std::uint32_t flow_class, std::size_t period) const {
  if (period == 0) return flow_class;
  const Schedule::Period& present = schedule_.periods[period - 1];
  return present.down[flow_class] == 0 ? flow_class : present.detours[flow_class];
}

/// The first whole number of timeouts from now at which the class can be used.
std::optional<Instant> Run::next_attempt(std::uint32_t flow_class) const {
  const std::int64_t timeout = schedule_.rule.timeout.value;
  for (std::size_t period = begun_; period <= schedule_.periods.size(); ++period) {
    if (usable(flow_class, period) == Demand::none) continue;
    const Instant begins = period == 0 ? Instant{} : schedule_.periods[period - 1].begins;
    const std::int64_t wait = std::max((begins - now_).value, timeout);
    const Instant when{now_.value + (wait + timeout - 1) / timeout * timeout};
    if (period == schedule_.periods.size() || when < schedule_.periods[period].begins) return when;
  }
  return std::nullopt;
}

void Run::fail_attempt(std::uint32_t operation, std::int64_t left) {
  ++outcome_.failures;
  const std::uint32_t phase = progress_[operation].phase - 1;
  const Demand::Phase& demand = demands_[operation].phases[phase];
  Bytes moved;
  if (demand.use == Demand::Use::route && demand.amount > left) {
    const Int128 drained = Int128{operations_.list[operation].bytes.value} * (demand.amount - left);
    moved = {static_cast<std::int64_t>(drained / demand.amount)};
    moved_by_class_[carriers_[operation]] += moved;
    furthest_[operation] = std::max(furthest_[operation], moved);
  }
  std::optional<Instant> again;
  if (schedule_.rule.policy != FailedSteps::stop) again = next_attempt(demand.flow_class);
  if (again) {
    outcome_.repeated += moved;
    progress_[operation].phase = phase;
    return wake_at(*again, operation);
  }
  states_[operation] = State::failed;
  outcome_.failed.push_back({operation, now_, furthest_[operation]});
  timeline_.spans[operation].end = now_;
  timeline_.end = now_;
}

void Run::finish(Ran& ran) {
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == State::waiting) outcome_.never_started.push_back(i);
  }
  for (const Schedule::Background& load : schedule_.background) {
    ran.background.push_back({fluid_.moved(load.flow_class)});
  }
  ran.outcome = std::move(outcome_);
  ran.moved_by_class = std::move(moved_by_class_);
}

}  // namespace isthmus::sim
