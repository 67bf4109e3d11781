#pragma once
// Messages inside an NVLink domain as puts, where a calibration says that they are faster. A put writes
// straight into the peer, whatever the strides; a message is one operation that several pieces may share, but
// pieces that do not lie in one piece at both ends are packed before and unpacked after it. For the mean
// message of a pair of GPUs in a plan, b bytes (constants of `replay`, docs/calibration.md):
//     message  message_time + large_message_time x min(1, b / 1 MiB) + b / exchange_bandwidth,
//              and if packed 2 x (kernel_time + 2 b / strided_bandwidth)
//     put      kernel_time + b / put_bandwidth
// Steps of one pattern change alike, by the sum over its instances. Without these constants, which two GPUs
// of one host are measured for, everything stays a message.

#include "model/calibration.hpp"
#include "planner/policy.hpp"

namespace isthmus {

/// Requires a plan of `balanced`; returns how many steps of patterns became puts.
std::size_t put_where_faster(const Refit& refit, const Calibration& calibration, Plan& plan);

/// The policy's plan, with puts if it is `balanced`.
PlanResult plan_under(const Policy& policy, const Refit& refit, const Calibration& calibration);

}  // namespace isthmus
