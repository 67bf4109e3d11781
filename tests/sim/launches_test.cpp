// Launches on devices: identities, and against a loop that knows only definitions.

#include "sim/launches.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::sim {
namespace {

constexpr std::int64_t capacity = 1'000'000;  // units per second: one takes 10^6 ps

/// One link that all flows share: class 0.
Fluid one_link() {
  Fluid fluid;
  fluid.add_class({{fluid.add_resource(capacity)}});
  return fluid;
}

LaunchWork copy_on(std::uint32_t device, std::int64_t copy, std::vector<LaunchAfter> after = {}) {
  LaunchWork work;
  work.devices = {device};
  work.copy = {copy};
  work.after = std::move(after);
  return work;
}

LaunchWork flow_of(std::int64_t amount, std::vector<LaunchAfter> after = {}) {
  LaunchWork work;
  work.devices = {0};
  work.flows = {{0, amount}};
  work.after = std::move(after);
  return work;
}

std::int64_t end_of(const std::vector<LaunchSpan>& spans, std::size_t i) { return spans[i].end.value; }

TEST(Launches, without_any_take_no_time) { EXPECT_TRUE(run_launches({}, 1, one_link()).empty()); }

TEST(Launches, without_work_end_when_they_start) {
  LaunchWork work;
  work.issued = {5};
  work.latency = {7};
  const std::vector<LaunchSpan> spans = run_launches({work}, 1, one_link());
  EXPECT_EQ(spans[0].begin, Instant{5});
  EXPECT_EQ(spans[0].end, Instant{12});
}

TEST(Launches, alone_take_their_copy_or_their_bytes_whichever_is_longer) {
  LaunchWork work = copy_on(0, 3'000'000);
  work.flows = {{0, 2}};
  EXPECT_EQ(end_of(run_launches({work}, 1, one_link()), 0), 3'000'000);
  work.flows = {{0, 4}};
  EXPECT_EQ(end_of(run_launches({work}, 1, one_link()), 0), 4'000'000);
}

TEST(Launches, copies_of_one_device_follow_each_other_and_those_of_two_overlap) {
  const auto same = run_launches({copy_on(0, 10), copy_on(0, 20)}, 2, one_link());
  EXPECT_EQ(end_of(same, 0), 10);
  EXPECT_EQ(end_of(same, 1), 30);
  const auto apart = run_launches({copy_on(0, 10), copy_on(1, 20)}, 2, one_link());
  EXPECT_EQ(end_of(apart, 1), 20);
}

TEST(Launches, copies_are_served_in_the_order_in_which_they_start) {
  LaunchWork late = copy_on(0, 10);
  late.issued = {5};
  const auto spans = run_launches({late, copy_on(0, 100)}, 1, one_link());
  EXPECT_EQ(end_of(spans, 1), 100);
  EXPECT_EQ(end_of(spans, 0), 110);
}

TEST(Launches, flows_share_the_link) {
  const auto spans = run_launches({flow_of(2), flow_of(2)}, 1, one_link());
  EXPECT_EQ(end_of(spans, 0), 4'000'000);
  EXPECT_EQ(end_of(spans, 1), 4'000'000);
}

TEST(Launches, begin_after_all_that_they_wait_for_each_with_its_delay) {
  const auto spans =
      run_launches({copy_on(0, 10), copy_on(1, 50), copy_on(2, 1, {{0, {100}}, {1, {0}}})}, 3, one_link());
  EXPECT_EQ(spans[2].begin, Instant{110});
  EXPECT_EQ(end_of(spans, 2), 111);
}

TEST(Launches, that_find_a_device_copying_wait_for_their_turn) {
  LaunchWork exchange = flow_of(1);
  exchange.issued = {10};
  exchange.turn = {1000};
  EXPECT_EQ(end_of(run_launches({exchange}, 1, one_link()), 0), 1'000'010);
  EXPECT_EQ(end_of(run_launches({copy_on(0, 50), exchange}, 1, one_link()), 1), 1'001'010);
  EXPECT_EQ(end_of(run_launches({copy_on(0, 5), exchange}, 1, one_link()), 1), 1'000'010);
}

// The oracle: no queue and no fluid, all launches looked at after each smallest step. In double.

struct NaiveState {
  double begin = -1, start = -1, end = -1, copy_end = -1, left = 0;
  bool running = false;
};

class NaiveLoop {
 public:
  explicit NaiveLoop(const std::vector<LaunchWork>& launches, std::uint32_t devices)
      : launches_(launches), free_(devices, 0.0), states_(launches.size()) {}

  std::vector<double> ends() {
    for (double now = 0; std::isfinite(now); now = next_after(now)) settle(now);
    std::vector<double> result;
    for (const NaiveState& state : states_) result.push_back(state.end);
    return result;
  }

 private:
  double ready(std::size_t i) const {
    auto when = static_cast<double>(launches_[i].issued.value);
    for (const LaunchAfter& after : launches_[i].after) {
      if (states_[after.launch].end < 0) return std::numeric_limits<double>::infinity();
      when = std::max(when, states_[after.launch].end + static_cast<double>(after.delay.value));
    }
    return when;
  }

  double share() const {
    const auto active = std::count_if(states_.begin(), states_.end(), [](const NaiveState& state) {
      return state.running && state.left > 0;
    });
    return static_cast<double>(capacity) * 1e-12 / static_cast<double>(std::max<std::ptrdiff_t>(active, 1));
  }

  void settle(double now) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < states_.size(); ++i) changed |= finish(i, now);
      for (std::size_t i = 0; i < states_.size(); ++i) changed |= begin(i, now);
      for (std::size_t i = 0; i < states_.size(); ++i) changed |= start(i, now);
    }
  }

  bool begin(std::size_t i, double now) {
    NaiveState& state = states_[i];
    if (state.begin >= 0 || ready(i) > now) return false;
    state.begin = now;
    const bool busy = std::any_of(launches_[i].devices.begin(), launches_[i].devices.end(),
                                  [&](std::uint32_t device) { return free_[device] > now; });
    state.start = now + static_cast<double>(launches_[i].latency.value) +
                  (busy ? static_cast<double>(launches_[i].turn.value) : 0);
    return true;
  }

  bool start(std::size_t i, double now) {
    NaiveState& state = states_[i];
    if (state.begin < 0 || state.running || state.end >= 0 || state.start > now) return false;
    state.running = true;
    state.copy_end = now;
    if (launches_[i].copy.value > 0) {
      double& free = free_[launches_[i].devices[0]];
      free = std::max(free, now) + static_cast<double>(launches_[i].copy.value);
      state.copy_end = free;
    }
    for (const LaunchFlow& flow : launches_[i].flows) state.left += static_cast<double>(flow.amount);
    return true;
  }

  bool finish(std::size_t i, double now) {
    NaiveState& state = states_[i];
    if (!state.running || state.left > 0 || state.copy_end > now) return false;
    state.running = false;
    state.end = now;
    return true;
  }

  /// The next instant at which anything happens; flows drain until then.
  double next_after(double now) {
    double next = std::numeric_limits<double>::infinity();
    const double rate = share();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const NaiveState& state = states_[i];
      if (state.begin < 0) next = std::min(next, ready(i));
      if (state.begin >= 0 && !state.running && state.end < 0) next = std::min(next, state.start);
      if (state.running && state.copy_end > now) next = std::min(next, state.copy_end);
      if (state.running && state.left > 0) next = std::min(next, now + state.left / rate);
    }
    for (NaiveState& state : states_) {
      if (!state.running || state.left <= 0 || !std::isfinite(next)) continue;
      state.left -= rate * (next - now);
      if (state.left < 1e-6) state.left = 0;
    }
    return next;
  }

  const std::vector<LaunchWork>& launches_;
  std::vector<double> free_;
  std::vector<NaiveState> states_;
};

/// Times are odd multiples of different primes, so that ties, whose order no definition fixes, are rare.
rc::Gen<std::vector<LaunchWork>> any_launches() {
  return rc::gen::exec([] {
    const std::size_t count = *rc::gen::inRange<std::size_t>(1, 13);
    std::vector<LaunchWork> launches;
    for (std::uint32_t i = 0; i < count; ++i) {
      LaunchWork work;
      work.issued = {*rc::gen::inRange<std::int64_t>(0, 1000) * 10'007};
      work.latency = {*rc::gen::inRange<std::int64_t>(0, 100) * 3'011};
      work.turn = {*rc::gen::inRange<std::int64_t>(0, 100) * 1'009};
      work.devices = {*rc::gen::inRange<std::uint32_t>(0, 2)};
      if (*rc::gen::arbitrary<bool>()) work.copy = {*rc::gen::inRange<std::int64_t>(1, 300) * 20'011};
      if (*rc::gen::arbitrary<bool>()) work.flows = {{0, *rc::gen::inRange<std::int64_t>(1, 20)}};
      for (std::uint32_t j = 0; j < i; ++j) {
        if (*rc::gen::inRange(0, 4) == 0) work.after.push_back({j, {*rc::gen::inRange(0, 50) * 7'001}});
      }
      launches.push_back(std::move(work));
    }
    return launches;
  });
}

RC_GTEST_PROP(LaunchesAgainstALoop, agree_within_rounding, ()) {
  const std::vector<LaunchWork> launches = *any_launches();
  const std::vector<LaunchSpan> spans = run_launches(launches, 2, one_link());
  const std::vector<double> expected = NaiveLoop(launches, 2).ends();
  for (std::size_t i = 0; i < launches.size(); ++i)
    RC_ASSERT(std::abs(static_cast<double>(spans[i].end.value) - expected[i]) < 1000);
}

}  // namespace
}  // namespace isthmus::sim
