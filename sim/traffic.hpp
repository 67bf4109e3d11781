#pragma once
// Predicts plain traffic (model/traffic_rules.hpp) on a fluid network: how long until all of it has arrived,
// the rates that follow, and the link that holds it back. No software terms: large messages.
// Rates are max-min fair (sim/fluid.hpp) over links of nominal x efficiency; a ring is one flow that loads a
// link as often as it crosses it. With channels, a stream that crosses the network has at most
//     channels x channel_bandwidth
// Bus bandwidth as nccl-tests prints it, n GPUs, B bytes, time t:
//     all-reduce, rings  B / t x 2 (n - 1) / n     all-to-all  B (n - 1) / t     shift  B / t
// Invariant: equal arguments give equal bits; no stream is faster than the slowest link on its way.

#include <optional>
#include <string>

#include "model/calibration.hpp"
#include "model/traffic_rules.hpp"

namespace isthmus::sim {

struct TrafficPrediction {
  Duration time;                          // until the last byte has arrived
  Bytes carried;                          // over all hops of all streams
  Bandwidth aggregate;                    // carried / time
  std::optional<Bandwidth> bus;           // of patterns that nccl-tests has
  std::string binding;                    // the busiest link on the way of the stream that ends last
  double busy = 0;                        // its share of the time
  std::string slowest;                    // the stream that ends last, the first of several
  Bandwidth slowest_rate;                 // its mean rate
  std::size_t streams = 0;                // flows or rings
  std::optional<std::uint32_t> channels;  // per network peer, where the scenario counts them

  /// What healthy and edited are compared by.
  Bandwidth rate() const { return bus.value_or(aggregate); }
};

/// Requires a traffic scenario without traffic_faults, and its fabric.
TrafficPrediction predict_traffic(const Fabric& fabric, const TrafficSpec& spec,
                                  const Calibration& calibration);

}  // namespace isthmus::sim
