#pragma once
// A timeline as trace-event JSON, which Perfetto and chrome://tracing open (docs/trace.md). Written piece by
// piece and bounded: of more than `limit` operations those of the critical path are kept, then the longest;
// what is left out is counted. Lanes: one process per NVLink domain, in it a row for each GPU that starts
// operations (ready to end), for its NIC and for NVLink of the domain (flows only). The critical path is a
// process of its own, and so are the loads of links.
// Invariants: on one row events never overlap; events are in lane order, then in the order of time; equal
// timelines give equal bytes. Times are microseconds with six decimals: exact picoseconds.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/executor.hpp"
#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/timeline.hpp"

namespace isthmus::report {

struct TracedRun {
  const Refit& refit;
  const Operations& operations;
  const Timeline& timeline;
  std::string policy;
  std::string what;                          // "predicted under h100-ib400", "measured on host"
  std::vector<Instant> flow_begins{};        // by operation; empty where nobody knows
  const Calibration* calibration = nullptr;  // of predictions
};

struct TraceSummary {
  std::size_t operations = 0, dropped_operations = 0;
  Bytes dropped_bytes;
  std::size_t links = 0, dropped_links = 0;  // that carry bytes: with a counter, without one
};

inline constexpr std::size_t trace_steps = 100;  // of each counter
inline constexpr std::size_t trace_most_links =
    512;  // that have a counter: those that carry most of their rate

/// Takes the document in pieces of some 64 kB.
using TraceSink = std::function<void(std::string_view)>;

/// At most 3 spans per kept operation, trace_steps + 1 events per counter, two for the name of each process
/// and row; every row holds a span.
TraceSummary write_trace(const TracedRun& run, std::size_t limit, const TraceSink& write);

/// What a proven plan is predicted to do.
TraceSummary trace_prediction(const Refit& refit, const Plan& plan, const Calibration& calibration,
                              std::size_t limit, const TraceSink& write);
/// What it did; link loads refer to nominal rates of the refit's fabric.
TraceSummary trace_measurement(const Refit& refit, const Plan& plan, const hw::Measurement& measurement,
                               std::size_t limit, const TraceSink& write);

}  // namespace isthmus::report
