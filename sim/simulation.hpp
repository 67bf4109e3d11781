#pragma once
// Predicts when each operation of a plan runs: a discrete-event simulation on a fluid network. A pure
// function of its arguments: equal input gives equal bits on any machine.
// Network. Active transfers share the links of their routes by max-min fairness (sim/fluid.hpp); a link
// carries nominal x efficiency of its class. An operation ready at t moves its first byte at
//     t + latency(path) + enqueue_time x (operations of its group on the busier of its ranks)
//  and then drains  bytes + operation_time(path) x (its rate when alone)  through its route.
// A collective is one pipelined flow over rings or chains of channels (sim/routes.hpp); where it leaves an
// NVLink domain, collectives of one communicator and root reach at most collective_bandwidth together.
// Calls. The first messages of a call (planner/calls.hpp) wait for their sender and then for their receiver:
//     export_time_per_tensor x tensors that the sender hands out,
//     python_call_time or native_call_time, of the receiver's host thread, which its streams share.
// Hosts. Export and load occupy the rank's host thread: parts x time per tensor; a load then moves its
// bytes through memory (read + write), as copies do; quantising reads BF16 there: Operation::quantising.
// Attribution. Each interval of the critical path belongs to the operation that ran in it, shared between
// bulk and misc by its bytes; loads are `other`. So they sum to the time; sim/terms.hpp. Faults: sim/run.hpp.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/timeline.hpp"
#include "sim/outcome.hpp"
#include "sim/term.hpp"

namespace isthmus::sim {

/// What a load of the background got on one port while the refit ran.
struct BackgroundShare {
  std::size_t load = 0;     // of Disturbances::background
  bool on_memory = false;   // of a GPU; else a link
  std::uint32_t where = 0;  // GPU or link
  Bandwidth wanted;
  Bytes moved;  // by all of its flows there
};

struct Prediction {
  Timeline timeline;
  Duration time;                 // makespan
  Duration bulk, misc, other;    // its parts along the critical path
  Bytes network_bytes;           // bytes that left a NIC
  Bytes nvlink_bytes;            // bytes that left a GPU over NVLink
  Bytes peak_staging;            // largest sum of staged bytes on one GPU at one time
  std::string binding_resource;  // the busiest resource, with the share of the time it was busy

  std::size_t parts = 0;  // of operations that ran alike: what was simulated

  // Under faults. Where the run stopped, `time` is when nothing moved any more, and operations that never
  // started have empty spans at 0.
  Outcome outcome{};
  std::vector<BackgroundShare> background{};  // on ports that the refit uses too

  // With Detail::terms:
  std::vector<Term> terms;           // what the time consists of; not under disturbances
  std::vector<Instant> flow_begins;  // when the last flow of each operation began
  std::vector<Work> work;            // host threads, memories, caps of collectives
};

/// How much a run says beyond its totals; terms cost time and memory per operation.
enum class Detail : std::uint8_t { totals, terms };

/// Whether operations that must run alike are run once for all (sim/quotient.hpp), and where they lie in
/// memory (QueuePlan::by_place). It changes no time; tests compare `always` and `by_place` with `never`.
///   where_useful  parts where few are left; else by place where the order of queues jumps about in memory
///   always        parts, however many
///   by_place      each operation by itself, all by place
///   never         each operation by itself, under its own number
enum class Symmetry : std::uint8_t { where_useful, always, by_place, never };

/// Runs the operations of one proven plan (from expand()) under any number of calibrations: what does not
/// depend on the calibration is prepared once. The refit and the operations must outlive it. A plan that
/// stalls aborts.
class Simulator {
 public:
  Simulator(const Refit& refit, const Operations& operations, Symmetry symmetry = Symmetry::where_useful);
  /// With other disturbances than those of the refit. They break symmetry: nothing runs once for all then.
  Simulator(const Refit& refit, const Operations& operations, const Disturbances& disturbances,
            Symmetry symmetry = Symmetry::where_useful);
  /// The same where the transport has so many CTAs on each GPU (sim/kernel_ports.hpp); 0: no limit. A limit
  /// breaks symmetry too.
  Simulator(const Refit& refit, const Operations& operations, const Disturbances& disturbances, int ctas);
  ~Simulator();

  Prediction run(const Calibration& calibration, Detail detail = Detail::totals) const;

 private:
  struct Prepared;
  std::unique_ptr<Prepared> prepared_;
};

/// One run of a Simulator.
Prediction simulate(const Refit& refit, const Operations& operations, const Calibration& calibration,
                    Detail detail = Detail::totals);

}  // namespace isthmus::sim
