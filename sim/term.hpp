#pragma once
// What the makespan is made of, as values: terms of the critical path (sim/terms.hpp computes them), and how
// long resources other than links are busy.
// Invariant: over all terms, bulk, misc and other each sum to that part of the prediction, so the terms
// together are the makespan, to the picosecond. Of each kind there is at most one term, in the order below.

#include <cstdint>
#include <string>
#include <string_view>

#include "model/units.hpp"

namespace isthmus::sim {

/// Beside each: the constants of the calibration that give it.
enum class TermKind : std::uint8_t {
  network_wire,       // bytes over links between NVLink domains, at nominal rates
  nvlink_wire,        // bytes over links within one
  link_efficiency,    // what the same bytes take beyond that: *_efficiency
  collective_cap,     // what collectives take beyond that: collective_bandwidth
  network_operation,  // ports held by an operation beyond its bytes: network_operation_time
  nvlink_operation,   // nvlink_operation_time
  network_latency,    // network_latency
  nvlink_latency,     // nvlink_latency
  enqueue,            // enqueue_time
  host_call,          // other host time of an operation
  export_host,        // export_time_per_tensor, the wait for the host thread included
  load_host,          // load_time_per_tensor, likewise
  memory,             // memory_bandwidth
  lane_window,        // a later operation waits only for its lane, and what it needs has room
};
inline constexpr std::size_t term_kinds = static_cast<std::size_t>(TermKind::lane_window) + 1;
/// The name in JSON: "network_wire".
std::string_view to_string(TermKind kind);
/// In words: "network wire".
std::string_view in_words(TermKind kind);

struct Term {
  TermKind kind = TermKind::network_wire;
  Duration bulk, misc, other;  // as in Prediction
  Duration total() const { return bulk + misc + other; }
};

/// How long a resource other than a link is busy in all.
struct Work {
  std::string resource;  // "host thread of rank 0"
  Duration busy;
};

}  // namespace isthmus::sim
