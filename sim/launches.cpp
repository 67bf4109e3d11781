#include "sim/launches.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::sim {
namespace {

/// What happens to a launch at an instant. Of one instant: ends first, for what they free; then by launch.
enum class Step : std::uint8_t { copied, begin, start };

struct LaunchEvent {
  Instant when;
  Step step = Step::begin;
  std::uint32_t launch = 0;

  bool operator>(const LaunchEvent& other) const {
    return std::tie(when, step, launch) > std::tie(other.when, other.step, other.launch);
  }
};

class LaunchRun {
 public:
  LaunchRun(const std::vector<LaunchWork>& launches, std::uint32_t devices, Fluid fluid)
      : launches_(launches), fluid_(std::move(fluid)), free_(devices), spans_(launches.size()) {
    begins_.resize(launches.size());
    waits_.resize(launches.size());
    parts_.resize(launches.size());
    followers_.resize(launches.size());
    for (std::uint32_t i = 0; i < launches.size(); ++i) {
      begins_[i] = launches[i].issued;
      waits_[i] = static_cast<std::uint32_t>(launches[i].after.size());
      for (const LaunchAfter& after : launches[i].after) {
        ISTHMUS_ASSERT(after.launch < i, "launch {} after {}", i, after.launch);
        followers_[after.launch].push_back({i, after.delay});
      }
      if (waits_[i] == 0) events_.push({begins_[i], Step::begin, i});
    }
  }

  std::vector<LaunchSpan> run() {
    std::vector<std::uint32_t> ended;
    fluid_.solve();
    while (true) {
      Instant flow_end;
      const bool flows = fluid_.next_end(flow_end);
      if (!flows && events_.empty()) break;
      const bool event_first = !events_.empty() && (!flows || events_.top().when < flow_end);
      const Instant now = event_first ? events_.top().when : flow_end;
      ended.clear();
      fluid_.advance(now, ended);
      std::sort(ended.begin(), ended.end());
      for (const std::uint32_t launch : ended) finish_part(launch, now);
      while (!events_.empty() && events_.top().when == now) {
        const LaunchEvent event = events_.top();
        events_.pop();
        handle(event);
      }
      fluid_.solve();
    }
    return std::move(spans_);
  }

 private:
  struct Follower {
    std::uint32_t launch = 0;
    Duration delay;
  };

  void handle(const LaunchEvent& event) {
    switch (event.step) {
      case Step::copied: return finish_part(event.launch, event.when);
      case Step::begin: return begin(event.launch, event.when);
      case Step::start: return start(event.launch, event.when);
    }
  }

  void begin(std::uint32_t launch, Instant now) {
    const LaunchWork& work = launches_[launch];
    spans_[launch].begin = now;
    const bool busy = std::any_of(work.devices.begin(), work.devices.end(),
                                  [&](std::uint32_t device) { return free_[device] > now; });
    events_.push({now + work.latency + (busy ? work.turn : Duration{}), Step::start, launch});
  }

  void start(std::uint32_t launch, Instant now) {
    const LaunchWork& work = launches_[launch];
    parts_[launch] = 1;  // this call, so that nothing ends the launch meanwhile
    if (work.copy.value > 0) {
      Instant& free = free_[work.devices.front()];
      free = std::max(free, now) + work.copy;
      events_.push({free, Step::copied, launch});
      ++parts_[launch];
    }
    for (const LaunchFlow& flow : work.flows) {
      fluid_.start(flow.flow_class, flow.amount, launch);
      ++parts_[launch];
    }
    finish_part(launch, now);
  }

  void finish_part(std::uint32_t launch, Instant now) {
    if (--parts_[launch] > 0) return;
    spans_[launch].end = now;
    for (const Follower& follower : followers_[launch]) {
      Instant& begins = begins_[follower.launch];
      begins = std::max(begins, now + follower.delay);
      if (--waits_[follower.launch] == 0) events_.push({begins, Step::begin, follower.launch});
    }
  }

  const std::vector<LaunchWork>& launches_;
  Fluid fluid_;
  std::vector<Instant> free_;  // by device: when its copies so far are done
  std::vector<LaunchSpan> spans_;
  std::vector<Instant> begins_;
  std::vector<std::uint32_t> waits_, parts_;
  std::vector<std::vector<Follower>> followers_;
  std::priority_queue<LaunchEvent, std::vector<LaunchEvent>, std::greater<>> events_;
};

}  // namespace

std::vector<LaunchSpan> run_launches(const std::vector<LaunchWork>& launches, std::uint32_t devices,
                                     Fluid fluid) {
  return LaunchRun(launches, devices, std::move(fluid)).run();
}

}  // namespace isthmus::sim
