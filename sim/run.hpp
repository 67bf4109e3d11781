#pragma once
// One run of a plan's operations: queues say who may start, delays and flows how long each of them takes.
// Everything that happens at one instant happens before rates are made max-min again, in this order: flows
// end, capacities change, operations start whose delay is over.
// Faults (sim/schedule.hpp). An attempt fails when its flow's class goes down while the flow runs, or is down
// when the flow would start. What ends at the very instant of a fault has ended. By the rule the operation
// then fails for good, or its phase starts again, with all of its amount, a whole number of timeouts later:
// the first at which its class, or with `reroute` a way around, is up. Where that never comes, it fails.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "planner/queues.hpp"
#include "planner/timeline.hpp"
#include "sim/flows.hpp"
#include "sim/fluid.hpp"
#include "sim/outcome.hpp"
#include "sim/staging.hpp"

namespace isthmus::sim {

/// What a run finds out, for each operation.
struct Ran {
  Timeline timeline;
  std::vector<Event> events;          // in the order of time, where they were wanted
  std::vector<Instant> phase_begins;  // by operation and phase, of the last attempt, likewise
  Outcome outcome{};
  std::vector<Bytes> moved_by_class{};  // on routes; with a schedule only
  std::vector<Bytes> background{};      // what each of the schedule moved
};

struct RunLogs {
  bool events = false, phases = false;
};

class Run {
 public:
  static constexpr std::size_t phases = std::tuple_size_v<decltype(Demand::phases)>;

  /// The last three: schedule, flow classes there are, and operations, which count with a schedule only.
  Run(Fluid& fluid, const std::vector<Demand>& demands, const QueuePlan& plan, Duration enqueue, RunLogs logs,
      const Schedule& schedule, std::size_t classes, const Operations& operations);

  Ran run();

 private:
  static constexpr std::uint32_t no_operation = 0xFFFFFFFF;
  enum class State : std::uint8_t { waiting, started, complete, failed };
  struct InFlight {
    std::uint32_t phase = 0;             // the next one
    std::uint32_t later = no_operation;  // the next operation of its timer
  };
  struct Timer {  // a list of operations
    Instant when;
    std::uint32_t sequence = 0;  // among those of one instant
    std::uint32_t first = no_operation;
    bool operator>(const Timer& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  bool next_instant(Instant& when);
  void step(Instant when);
  void make_ready(std::uint32_t operation, std::uint32_t cause);
  void wake_at(Instant when, std::uint32_t operation);
  void next_phase(std::uint32_t operation);
  void complete(std::uint32_t operation);
  void start_background();
  void change_capacities();
  /// The class to start a flow in at present; none where it is down and has no way around.
  std::uint32_t usable(std::uint32_t flow_class, std::size_t period) const;
  std::optional<Instant> next_attempt(std::uint32_t flow_class) const;
  void fail_attempt(std::uint32_t operation, std::int64_t left);
  void finish(Ran& ran);

  Fluid& fluid_;
  const std::vector<Demand>& demands_;
  const QueuePlan& plan_;
  const Schedule& schedule_;
  const Operations& operations_;
  Queues queues_;
  Timeline timeline_;
  std::vector<InFlight> progress_;                                         // by operation
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;  // whose next phase begins then
  Instant latest_;                                                         // of the timer added last
  std::uint32_t last_of_latest_ = no_operation;                            // none where that one is gone
  std::uint32_t next_sequence_ = 0;
  std::vector<std::uint32_t> ended_, ready_;
  std::vector<Event> events_;
  std::vector<Instant> phase_begins_;  // by operation and phase
  bool logs_ = false;
  Duration enqueue_;
  Instant now_;
  // With a schedule:
  std::size_t begun_ = 0;  // periods
  Outcome outcome_;
  std::vector<State> states_;
  std::vector<std::uint32_t> carriers_;  // by operation: the class of its last flow
  std::vector<Bytes> furthest_;          // by operation: what its furthest failed attempt moved
  std::vector<Bytes> moved_by_class_;
  std::vector<Fluid::Cancelled> cancelled_;
};

}  // namespace isthmus::sim
