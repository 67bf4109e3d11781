// Timelines of schedules that ran in a random order keep the invariant of planner/timeline.hpp and obey the
// plan's dependencies.

#include "hw/gpu_timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/gpu_interpreter.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

TEST(GpuTimeline, keeps_its_invariant_and_the_dependencies_in_any_order) {
  std::size_t judged = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    const PlanResult result = seed % 2 == 0 ? plan_striped(refit) : plan_gather_broadcast(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    if (plan == nullptr) continue;
    const Program program(refit, *plan);
    ScheduleOptions options;
    options.slot_bytes = 256;
    options.direct_bytes = 64;
    const GpuSchedule schedule = make_schedule(program, 2, options);
    const test::InterpretedRun run = test::interpret(program, schedule, seed);
    std::vector<Instant> ends(schedule.launches.size());
    for (std::size_t i = 0; i < run.finished.size(); ++i)
      ends[run.finished[i]] = {static_cast<std::int64_t>(i) + 1};
    const Timeline timeline = timeline_of(program, schedule, ends);
    ASSERT_EQ(timeline.spans.size(), program.operations().list.size());
    EXPECT_LE(timeline.end, Instant{static_cast<std::int64_t>(ends.size())});
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      const Span& span = timeline.spans[i];
      EXPECT_LE(span.ready, span.end);
      if (span.cause != Span::no_cause) {
        EXPECT_LE(timeline.spans[span.cause].end, span.ready);
      }
      for (const std::uint32_t earlier : program.operations().dependencies(program.operations().list[i]))
        EXPECT_LE(timeline.spans[earlier].end, span.ready);
    }
    EXPECT_EQ(timeline.spans.empty(), timeline.critical_path().empty());
    ++judged;
  }
  EXPECT_GT(judged, 20U);
}

}  // namespace
}  // namespace isthmus::hw
