#pragma once
// A calibration (model/calibration.hpp) from curves (hw/microbench.hpp). GPUs of one host say nothing about a
// network, so whatever they do not say stays as in `base`. With t(n, s) the time of a group of n messages
// of s bytes from one GPU to another, and R the rate of the largest message alone:
//   nvlink_efficiency      R / nominal; from the rate with both directions at work to R
//   nvlink_latency         t(1, smallest), fastest to slowest run
//   enqueue_time           host time per message of the largest group of the smallest ones; over all sizes
//   nvlink_operation_time  (t(n, s) - t(1, s)) / (n - 1) - s / R, at least 0: smallest s; over all s
//   memory_bandwidth       twice the rate of strided copies, their median; over all of them
// n is the largest group that was measured at that size. From messages of MPI, between hosts, likewise with
// R the slope from the smallest to the largest message alone:
//   nic_efficiency         R / nominal
//   network_latency        t(1, s) - s / R, at least 0: smallest s; over all s
//   network_operation_time as above

#include <string>
#include <vector>

#include "hw/microbench.hpp"
#include "model/calibration.hpp"

namespace isthmus::hw {

/// `nominal`: of the NVLink, or of the NIC, that was measured. `source`: what measured, and when. Constants
/// of which there is no curve keep those of `base`.
Calibration fitted(const std::vector<CurvePoint>& curves, const Calibration& base, Bandwidth nominal,
                   const std::string& source);

/// Constants of replays, where `base` has them; with
/// each(s) = (t(n, s) - t(1, s)) / (n - 1) - s / R', and o(s) = t(1, s) - s / R':
///   exchange_bandwidth R'  bytes / time between the two largest messages alone
///   both_ways_share        of the group with the most bytes, from both directions to one
///   put_bandwidth          the best put
///   message_time           each(smallest); large_message_time: median of each(s) - that, 1 to 16 MiB
///   ramp_time              median of (o(s) - o(smallest) - large_message_time)(1 + 16 MiB / s), 4 to 256 MiB
///   copy_bandwidth         twice the rate of copies in one piece; strided_bandwidth: median of those in rows
///   kernel_host_time, issue_latency, kernel_time   launch: its host time; no-work; what is left of launch
///   message_host_time      as enqueue_time; exchange_host_time: what is left of t(1, smallest)'s host time
/// What no curve shows stays.
void fit_replay(const std::vector<CurvePoint>& curves, const std::string& source, ReplayConstants& constants);

/// A calibration file; `heading` becomes its comment.
std::string calibration_text(const Calibration& calibration, const std::string& heading);

}  // namespace isthmus::hw
