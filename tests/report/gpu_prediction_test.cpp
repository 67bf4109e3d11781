#include "report/gpu_prediction.hpp"

#include <algorithm>
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/gpu_timeline.hpp"
#include "hw/program.hpp"
#include "model/error.hpp"
#include "model/refit.hpp"
#include "model/refit_scale.hpp"
#include "planner/policies/local_puts.hpp"
#include "planner/policy.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

using ::testing::HasSubstr;

const ReplayConstants constants = *read_calibration("h200-nvlink", project_folder() / "scenarios").replay;

Refit metal(const std::string& name, double share) {
  return scale_refit(resolve(read_scenario(project_folder() / "scenarios/metal" / (name + ".yaml"))), share)
      .refit;
}

hw::GpuSchedule schedule_of(const Refit& refit, const std::string& policy) {
  const Plan plan = std::get<Plan>(find_policy(policy)->make(refit));
  return hw::make_schedule(hw::Program(refit, plan), 2);
}

hw::GpuSchedule schedule_of(const std::string& name, double share, const std::string& policy) {
  return schedule_of(metal(name, share), policy);
}

double predicted(const hw::GpuSchedule& schedule, const ReplayConstants& chosen) {
  return seconds(predict_on_gpus(schedule, chosen).end);
}

/// A schedule for two GPUs without launches yet.
hw::GpuSchedule empty_schedule() {
  hw::GpuSchedule schedule;
  schedule.folding.gpus = 2;
  schedule.moves.resize(2);
  schedule.moves_begin = {{0}, {0}};
  return schedule;
}

void add_exchange(hw::GpuSchedule& schedule, std::vector<hw::Message> messages) {
  hw::Launch launch;
  launch.kind = hw::LaunchKind::exchange;
  launch.stream = hw::GpuSchedule::exchange_stream;
  launch.messages_begin = static_cast<std::uint32_t>(schedule.messages.size());
  schedule.messages.insert(schedule.messages.end(), messages.begin(), messages.end());
  launch.messages_end = static_cast<std::uint32_t>(schedule.messages.size());
  launch.waits_begin = launch.waits_end = static_cast<std::uint32_t>(schedule.waits.size());
  schedule.launches.push_back(launch);
  for (auto& begin : schedule.moves_begin) begin.push_back(begin.back());
}

TEST(GpuPrediction, of_many_small_tensors_is_shorter_with_the_puts_of_balanced) {
  for (const char* name :
       {"pair-many-tensors", "rows-to-columns-4", "pair-one-tensor", "bidirectional-2", "replicas-4-to-2"}) {
    const Refit refit = metal(name, 1);
    Plan plan = std::get<Plan>(plan_balanced(refit));
    const double messages = predicted(hw::make_schedule(hw::Program(refit, plan), 2), constants);
    EXPECT_GT(put_where_faster(refit, read_calibration("h200-nvlink", project_folder() / "scenarios"), plan),
              0U);
    const double puts = predicted(hw::make_schedule(hw::Program(refit, plan), 2), constants);
    std::printf("%s: messages %.6f s, puts %.6f s\n", name, messages, puts);
    EXPECT_LT(puts, messages) << name;
  }
}

TEST(GpuPrediction, of_no_launches_is_no_time) {
  const GpuPrediction prediction = predict_on_gpus(empty_schedule(), constants);
  EXPECT_EQ(prediction.end, Instant{});
  EXPECT_TRUE(prediction.launches.empty());
}

TEST(GpuPrediction, of_one_message_is_issue_latency_start_and_wire) {
  hw::GpuSchedule schedule = empty_schedule();
  add_exchange(schedule, {{0, 1, 0, 0, 16 << 20}});
  const double expected =
      constants.exchange_host_time.value + constants.message_host_time.value + constants.issue_latency.value +
      constants.exchange_latency.value + constants.message_time.value + constants.large_message_time.value +
      constants.ramp_time.value / 2 + static_cast<double>(16 << 20) / constants.exchange_bandwidth.value;
  EXPECT_NEAR(predicted(schedule, constants), expected, 1e-9);
}

TEST(GpuPrediction, of_both_directions_at_once_shares_what_both_together_reach) {
  hw::GpuSchedule one = empty_schedule(), both = empty_schedule();
  add_exchange(one, {{0, 1, 0, 0, 1 << 30}});
  add_exchange(both, {{0, 1, 0, 0, 1 << 30}, {1, 0, 0, 0, 1 << 30}});
  const double wire = static_cast<double>(1 << 30) / constants.exchange_bandwidth.value;
  EXPECT_NEAR(predicted(both, constants) - predicted(one, constants),
              wire / constants.both_ways_share.value - wire + constants.message_host_time.value, 1e-8);
}

TEST(GpuPrediction, of_exchanges_in_one_stream_adds_up_once_the_host_is_ahead) {
  hw::GpuSchedule schedule = empty_schedule();
  std::vector<double> times;
  for (int i = 0; i < 4; ++i) {
    add_exchange(schedule, {{0, 1, 0, 0, 1 << 28}});
    times.push_back(predicted(schedule, constants));
  }
  EXPECT_NEAR(times[3] - times[2], times[2] - times[1], 1e-9);
  EXPECT_GT(times[3] - times[2], static_cast<double>(1 << 28) / constants.exchange_bandwidth.value);
}

TEST(GpuPrediction, has_launches_that_begin_after_what_they_wait_for) {
  for (const char* policy : {"golden", "gather-broadcast", "p2p", "balanced"}) {
    const hw::GpuSchedule schedule = schedule_of("rows-to-columns-4", 0.01, policy);
    const GpuPrediction prediction = predict_on_gpus(schedule, constants);
    ASSERT_EQ(prediction.launches.size(), schedule.launches.size());
    std::vector<Instant> last(schedule.streams());
    for (std::size_t l = 0; l < schedule.launches.size(); ++l) {
      const sim::LaunchSpan& span = prediction.launches[l];
      EXPECT_LE(span.begin, span.end);
      for (const std::uint32_t earlier : schedule.waits_of(schedule.launches[l]))
        EXPECT_LE(prediction.launches[earlier].end, span.end) << policy << " " << l;
      Instant& before = last[schedule.launches[l].stream];
      EXPECT_LE(before, span.end) << policy << " " << l;
      before = span.end;
    }
    EXPECT_EQ(*std::max_element(last.begin(), last.end()), prediction.end);
  }
}

TEST(GpuPrediction, gives_a_timeline_of_operations_as_a_measurement_does) {
  const Refit refit = metal("rows-to-columns-4", 0.01);
  const Plan plan = std::get<Plan>(plan_p2p(refit));
  const hw::Program program(refit, plan);
  const hw::GpuSchedule schedule = hw::make_schedule(program, 2);
  const GpuPrediction prediction = predict_on_gpus(schedule, constants);
  const Timeline timeline = hw::timeline_of(program, schedule, prediction.ends());
  EXPECT_EQ(timeline.spans.size(), program.operations().list.size());
  EXPECT_EQ(timeline.end, prediction.end);
}

/// More time, or less of what makes things fast, never makes a replay faster. Copies are served in the order
/// in which they start, so a constant may reorder them: a hundredth is allowed for that.
TEST(GpuPrediction, is_monotone_in_each_constant) {
  for (const char* policy : {"golden", "gather-broadcast", "p2p", "m2n-uniform", "balanced"}) {
    const hw::GpuSchedule schedule = schedule_of("rows-to-columns-4", 0.1, policy);
    const double before = predicted(schedule, constants);
    for (const ReplayField& field : replay_fields()) {
      ReplayConstants slower = constants;
      (slower.*field.member).value *= field.unit == "s" ? 2 : 0.75;
      EXPECT_GE(predicted(schedule, slower), 0.99 * before) << policy << " " << field.key;
    }
  }
}

TEST(GpuPrediction, copies_again_from_what_the_cache_holds_are_faster) {
  const hw::GpuSchedule schedule = schedule_of("rows-to-rows-32", 1, "gather-broadcast");
  ReplayConstants none = constants;
  none.cache.value = 1;
  EXPECT_LT(predicted(schedule, constants), 0.95 * predicted(schedule, none));
}

TEST(GpuPrediction, of_a_put_takes_the_rate_of_puts) {
  const hw::GpuSchedule schedule = schedule_of("pair-one-tensor", 1, "golden");
  ReplayConstants slow = constants;
  slow.put_bandwidth.value /= 2;
  bool puts = false;
  for (std::uint32_t g = 0; g < 2; ++g) {
    for (const hw::GpuMove& move : schedule.moves[g]) puts |= move.target_gpu != g;
  }
  EXPECT_EQ(predicted(schedule, slow) > predicted(schedule, constants), puts);
}

TEST(GpuPrediction, of_a_graph_has_no_time_of_the_host) {
  const ReplayConstants graph = without_host(constants);
  double gained = 0;
  for (const char* name : {"pair-many-tensors", "pair-one-tensor", "rows-to-columns-4", "bidirectional-2"}) {
    for (const double share : {0.004, 0.1}) {
      const hw::GpuSchedule schedule = schedule_of(name, share, "golden");
      const GpuPrediction one_by_one = predict_on_gpus(schedule, constants);
      const GpuPrediction at_once = predict_on_gpus(schedule, graph);
      EXPECT_GT(one_by_one.issued, Instant{});
      EXPECT_EQ(at_once.issued, Instant{});
      gained = std::max(gained, 1 - seconds(at_once.end) / seconds(one_by_one.end));
    }
  }
  EXPECT_GT(gained, 0.1);
}

TEST(GpuPrediction, needs_a_calibration_with_constants_of_replays) {
  const Calibration with = read_calibration("h200-nvlink", project_folder() / "scenarios");
  EXPECT_EQ(&replay_constants(with, {}), &*with.replay);
  try {
    replay_constants(wire_only(), {"a.yaml", 7, "calibration"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.yaml:7: calibration: found 'wire-only', which has no constants of "
                                        "replays on GPUs; allowed: to predict those: a calibration with"));
  }
}

}  // namespace
}  // namespace isthmus::report
