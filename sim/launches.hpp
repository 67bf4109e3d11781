#pragma once
// Launches on devices that one host thread issues, over time: what GPU streams do, without a word of GPUs.
// A launch begins when it is issued and all that it comes after has ended, each with its delay; `turn` later,
// if one of its devices copies at that moment; and `latency` after that its work starts. Copies of a device
// are done one after the other, in the order in which they start: each has more blocks than fit, and blocks
// are handed out in that order. Flows share what `fluid` says (sim/fluid.hpp). A launch ends when its copy
// and its flows have ended; without any, when its work starts.
// With t_i: begin_i = max(issued_i, max over after: end_j + delay_ij); start_i = begin_i + turn? + latency;
// copy ends at max(start_i, end of the device's copy before) + copy_i.
// Invariant: a launch comes after launches before it only, so none waits for ever. Ties go by index.

#include <cstdint>
#include <vector>

#include "model/units.hpp"
#include "sim/fluid.hpp"

namespace isthmus::sim {

struct LaunchAfter {
  std::uint32_t launch = 0;
  Duration delay;
};

struct LaunchFlow {
  std::uint32_t flow_class = 0;  // of the fluid
  std::int64_t amount = 0;
};

struct LaunchWork {
  Instant issued;
  Duration latency, turn;
  std::vector<std::uint32_t> devices;  // a copy is done by the first
  Duration copy;                       // 0: none
  std::vector<LaunchFlow> flows;
  std::vector<LaunchAfter> after;
};

struct LaunchSpan {
  Instant begin, end;
  friend bool operator==(const LaunchSpan&, const LaunchSpan&) = default;
};

/// By launch. `fluid` has its resources and classes, and no flows.
std::vector<LaunchSpan> run_launches(const std::vector<LaunchWork>& launches, std::uint32_t devices,
                                     Fluid fluid);

}  // namespace isthmus::sim
