#include "hw/gpu_timeline.hpp"

#include <algorithm>
#include <cstddef>

namespace isthmus::hw {
namespace {

/// The launch that ended last, and with it the wait.
std::uint32_t last_of(const std::vector<std::uint32_t>& launches, const std::vector<Instant>& ends) {
  return *std::max_element(launches.begin(), launches.end(),
                           [&ends](std::uint32_t a, std::uint32_t b) { return ends[a] < ends[b]; });
}

/// By launch: an operation that ends with it, or no_cause.
std::vector<std::uint32_t> enders(const Timeline& timeline, const GpuSchedule& schedule,
                                  const std::vector<Instant>& ends) {
  std::vector<std::uint32_t> result(ends.size(), Span::no_cause);
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    for (const std::uint32_t launch : schedule.launches_of_operation(i)) {
      if (ends[launch] == timeline.spans[i].end) result[launch] = i;
    }
  }
  return result;
}

}  // namespace

Timeline timeline_of(const Program& program, const GpuSchedule& schedule, const std::vector<Instant>& ends) {
  Timeline timeline;
  timeline.spans.resize(program.operations().list.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    Span& span = timeline.spans[i];
    const std::vector<std::uint32_t>& start = schedule.starts[schedule.batch_of[i]];
    if (!start.empty()) span.ready = ends[last_of(start, ends)];
    span.end = span.ready;
    for (const std::uint32_t launch : schedule.launches_of_operation(i))
      span.end = std::max(span.end, ends[launch]);
    timeline.end = std::max(timeline.end, span.end);
  }
  const std::vector<std::uint32_t> ender = enders(timeline, schedule, ends);
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const std::vector<std::uint32_t>& start = schedule.starts[schedule.batch_of[i]];
    if (!start.empty()) timeline.spans[i].cause = ender[last_of(start, ends)];
  }
  return timeline;
}

}  // namespace isthmus::hw
