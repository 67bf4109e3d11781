// The NCCL backend as it is, on GPUs of host memory (runtime.hpp): launches one by one and as a graph.

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/cuda/nccl.hpp"
#include "hw/cuda/session.hpp"
#include "planner/policy.hpp"
#include "tests/fake_cuda/runtime.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t refits = 60;

Refit spread_refit(std::uint64_t seed) {
  Refit refit = test::make_refit(seed % 5 == 4 ? test::repeated_case(seed) : test::sample_case(seed));
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank) refit.gpu_of_rank[rank] = {rank};
  return refit;
}

/// Slots and messages so small that there are many launches.
NcclSettings small_settings(std::uint64_t seed) {
  NcclSettings settings;
  settings.schedule.lane_streams = static_cast<std::uint32_t>(1 + seed % 3);
  settings.schedule.slots = static_cast<std::uint32_t>(1 + seed / 3 % 3);
  settings.schedule.slot_bytes = 256 << seed / 9 % 3;
  settings.schedule.direct_bytes = seed / 2 % 2 == 0 ? 1 : 64;
  settings.schedule.largest_message = seed / 4 % 2 == 0 ? 1 << 20 : 48;
  return settings;
}

RunOptions twice(bool graph) {
  RunOptions options;
  options.warm_up = 1;
  options.repetitions = 2;
  options.graph = graph;
  options.deadline = {20 * picoseconds_per_second};
  return options;
}

/// Calls `visit` with every policy's program of every refit, and how much it has to do.
template <class Visit>
void visit_programs(std::uint64_t first, std::uint64_t step, Visit visit) {
  for (std::uint64_t seed = first; seed < refits; seed += step) {
    const Refit refit = spread_refit(seed);
    for (const Policy& policy : policies()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " + std::string(policy.name));
      const PlanResult result = policy.make(refit);
      const Plan* plan = std::get_if<Plan>(&result);
      if (plan != nullptr) visit(seed, Program(refit, *plan));
    }
  }
}

test::FakeGpus gpus_for(std::uint64_t seed) { return {static_cast<std::uint32_t>(1 + seed % 4), seed}; }

TEST(FakeGpus, end_byte_exact_however_launches_are_issued) {
  std::size_t with_messages = 0, programs = 0;
  visit_programs(0, 1, [&](std::uint64_t seed, const Program& program) {
    for (const bool graph : {false, true}) {
      SCOPED_TRACE(graph ? "graph" : "one by one");
      test::reset_fake_gpus(gpus_for(seed));
      {
        NcclExecutor executor(small_settings(seed));
        const Measurement measurement = executor.run(program, twice(graph));
        EXPECT_TRUE(measurement.byte_exact()) << measurement.mismatch_count;
        EXPECT_EQ(measurement.graph, graph);
        EXPECT_THAT(measurement.graph_refused, IsEmpty());
        EXPECT_EQ(measurement.times.size(), 2U);
        if (measurement.launches > 0 && graph) {
          EXPECT_GT(measurement.fastest(), Duration{});
        }
        const test::FakeGpuCounts counts = test::fake_gpu_counts();
        EXPECT_EQ(counts.graph_launches, graph ? run_count(twice(graph), measurement.passes_needed) : 0U);
        EXPECT_EQ(counts.captures, graph ? 1U : 0U);
        with_messages += counts.groups > 0 ? 1 : 0;
      }
      EXPECT_EQ(test::fake_gpu_counts().handles, 0U);
      ++programs;
    }
  });
  EXPECT_GT(programs, 200U);
  EXPECT_GT(with_messages, 50U);
}

TEST(FakeGpus, have_no_part_for_the_host_in_a_graph) {
  visit_programs(1, 6, [](std::uint64_t seed, const Program& program) {
    test::reset_fake_gpus(gpus_for(seed));
    const GpuSchedule schedule = make_schedule(program, gpus_for(seed).gpus, small_settings(seed).schedule);
    Communicators communicators;
    GpuSession session(program, schedule, std::chrono::seconds(20), communicators);
    session.capture();
    session.prepare(0);
    const test::FakeGpuCounts before = test::fake_gpu_counts();
    const std::vector<Instant> ends = session.execute();
    const test::FakeGpuCounts after = test::fake_gpu_counts();
    EXPECT_EQ(after.kernels, before.kernels);
    EXPECT_EQ(after.groups, before.groups);
    EXPECT_EQ(after.graph_launches, before.graph_launches + 1);
    ASSERT_EQ(ends.size(), schedule.launches.size());
    for (std::size_t l = 0; l < ends.size(); ++l) {
      EXPECT_GT(ends[l], Instant{});
      if (schedule.folding.gpus > 1) continue;  // each has a start of its own
      for (const std::uint32_t earlier : schedule.waits_of(schedule.launches[l]))
        EXPECT_LT(ends[earlier], ends[l]);
    }
    session.close();
  });
}

/// Both ways of issuing keep the schedule's order, and nothing else does.
TEST(FakeGpus, show_wrong_bytes_where_waits_are_missing) {
  std::map<bool, std::size_t> wrong;
  visit_programs(2, 3, [&](std::uint64_t seed, const Program& program) {
    for (const bool graph : {false, true}) {
      test::reset_fake_gpus(gpus_for(seed));
      GpuSchedule schedule = make_schedule(program, gpus_for(seed).gpus, small_settings(seed).schedule);
      for (Launch& launch : schedule.launches) launch.waits_end = launch.waits_begin;
      Communicators communicators;
      GpuSession session(program, schedule, std::chrono::seconds(20), communicators);
      if (graph) session.capture();
      Measurement measurement;
      session.prepare(0);
      session.execute();
      session.judge(0, 5, measurement);
      session.close();
      wrong[graph] += measurement.mismatch_count > 0 ? 1 : 0;
    }
  });
  EXPECT_GT(wrong[false], 5U);
  EXPECT_GT(wrong[true], 5U);
}

/// A program with kernels and messages between two GPUs.
class GraphFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t seed = 0; !program_; ++seed) {
      refit_ = spread_refit(seed);
      plan_ = std::get<Plan>(plan_p2p(*refit_));
      const Program program(*refit_, *plan_);
      const GpuSchedule schedule = make_schedule(program, 2, small_settings(0).schedule);
      const auto count = [&](LaunchKind kind) {
        return std::count_if(schedule.launches.begin(), schedule.launches.end(),
                             [kind](const Launch& launch) { return launch.kind == kind; });
      };
      if (count(LaunchKind::moves) < 2 || count(LaunchKind::exchange) < 2) continue;
      program_.emplace(*refit_, *plan_);
    }
  }

  std::optional<Refit> refit_;
  std::optional<Plan> plan_;
  std::optional<Program> program_;
};

TEST_F(GraphFaults, end_in_launches_one_by_one_with_the_reason) {
  for (const char* call : {"cudaStreamBeginCapture", "cudaEventRecord", "cudaStreamWaitEvent", "kernel",
                           "ncclGroupEnd", "cudaStreamEndCapture", "cudaGraphInstantiateWithFlags"}) {
    SCOPED_TRACE(call);
    test::reset_fake_gpus({2, 7, call});
    {
      NcclExecutor executor(small_settings(0));
      for (int again = 0; again < 2; ++again) {
        const Measurement measurement = executor.run(*program_, twice(true));
        EXPECT_TRUE(measurement.byte_exact());
        EXPECT_FALSE(measurement.graph);
        EXPECT_EQ(measurement.times.size(), 2U);
        EXPECT_THAT(measurement.graph_refused, HasSubstr("made-up failure"));
      }
      EXPECT_EQ(test::fake_gpu_counts().graph_launches, 0U);
    }
    EXPECT_EQ(test::fake_gpu_counts().handles, 0U);
  }
}

TEST_F(GraphFaults, never_hang_where_a_message_does_not_come) {
  for (const bool graph : {false, true}) {
    SCOPED_TRACE(graph ? "graph" : "one by one");
    test::reset_fake_gpus({2, 7});
    const GpuSchedule schedule = make_schedule(*program_, 2, small_settings(0).schedule);
    const auto begin = std::chrono::steady_clock::now();
    {
      Communicators communicators;
      try {
        GpuSession session(*program_, schedule, std::chrono::milliseconds(300), communicators);
        if (graph) session.capture();
        session.prepare(0);
        test::lose_fake_messages();
        session.execute();
        FAIL() << "a run ended without its messages";
      } catch (const SystemError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no progress for 0.3 s"));
        EXPECT_THAT(error.what(), HasSubstr(graph ? "graph of" : "launch "));
      }
    }
    // Long before the fake gives up on a communicator that some graph still holds.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
    EXPECT_EQ(test::fake_gpu_counts().handles, 0U);
  }
}

}  // namespace
}  // namespace isthmus::hw
