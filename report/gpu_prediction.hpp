#pragma once
// How long the GPUs of one host take for a folded program: the launches of a schedule (hw/gpu_schedule.hpp)
// as sim/launches.hpp runs them, under the constants of a calibration's `replay`, named in parentheses.
// Host: one thread issues launches in list order. A launch costs, on each GPU, a call for each event of
// another stream or GPU that it waits for (wait_host_time) and for its own event (record_host_time); a kernel
// for each GPU with moves (kernel_host_time); an exchange exchange_host_time and message_host_time for each
// message. GPUs see it issue_latency later.
// GPU: streams are in order on each GPU. What waits for another stream or GPU begins dispatch_time after it.
// A kernel of moves starts after kernel_time; a move of n units of w bytes takes the longer of n / units per
// second (contiguous_bandwidth or strided_bandwidth / 16) and its bytes through memory / copy_bandwidth:
// twice its bytes, less what its cache still holds of the same source, 1 - 2 bytes / cache of it.
// An exchange starts after exchange_latency + the greatest sum, over senders, of message_time +
// large_message_time x min(1, b / 1 MiB) + ramp_time x b / (b + 16 MiB) of its largest message b. Its bytes
// take exchange_bandwidth out of and into each GPU, 2 x both_ways_share x that through it; those of puts
// exchange_bandwidth / put_bandwidth as much.

#include <vector>

#include "hw/gpu_schedule.hpp"
#include "model/calibration.hpp"
#include "sim/launches.hpp"

namespace isthmus::report {

struct GpuPrediction {
  Instant end;                            // of the last launch
  Instant issued;                         // when the host has issued all of them
  std::vector<sim::LaunchSpan> launches;  // first begin and last end, over the GPUs

  std::vector<Instant> ends() const;  // by launch, for hw::timeline_of
};

GpuPrediction predict_on_gpus(const hw::GpuSchedule& schedule, const ReplayConstants& constants);

/// Of launches that are one graph: the host has issued all of them before the first begins, so its times per
/// kernel, exchange, message, wait and event are 0. What a graph costs by itself is not in it. Copies that
/// are ready at once queue up in another order than those that the host issues late: a graph may take longer.
ReplayConstants without_host(ReplayConstants constants);

/// InputError at `where` for a calibration that says nothing of replays.
const ReplayConstants& replay_constants(const Calibration& calibration, const Location& where);

}  // namespace isthmus::report
