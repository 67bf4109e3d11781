// Every policy on random refits, laid out for one to four GPUs with slots, messages and groups so small that
// everything is cut, and carried out by GPUs of host memory in random order: every byte arrives. A schedule
// that lacks its waits is found out.

#include "hw/gpu_schedule.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/gpu_interpreter.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::hw {
namespace {

constexpr std::uint64_t gpu_refits = 800;  // of all shards

/// Ranks on hosts of eight GPUs, in order or two to a GPU.
Refit hosted_refit(std::uint64_t seed) {
  Refit refit = test::make_refit(seed % 5 == 4 ? test::repeated_case(seed) : test::sample_case(seed));
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank)
    refit.gpu_of_rank[rank] = {seed % 2 == 0 ? rank : rank / 2};
  return refit;
}

ScheduleOptions small_options(std::uint64_t seed) {
  ScheduleOptions options;
  options.lane_streams = static_cast<std::uint32_t>(1 + seed % 3);
  options.slots = static_cast<std::uint32_t>(1 + seed / 3 % 3);
  options.slot_bytes = 256 << seed / 9 % 3;
  options.direct_bytes = seed / 2 % 2 == 0 ? 1 : 64;
  options.largest_message = seed / 4 % 2 == 0 ? 1 << 20 : 48;
  options.most_messages = seed / 8 % 2 == 0 ? 1024 : 4;
  options.join = seed / 16 % 2 == 0;
  return options;
}

void expect_limits(const GpuSchedule& schedule, const ScheduleOptions& options) {
  for (std::size_t l = 0; l < schedule.launches.size(); ++l) {
    const Launch& launch = schedule.launches[l];
    for (const std::uint32_t earlier : schedule.waits_of(launch)) EXPECT_LT(earlier, l);
    const auto messages = schedule.messages_of(launch);
    EXPECT_EQ(messages.empty(), launch.kind == LaunchKind::moves);
    // What one transfer alone is cut into stays together.
    EXPECT_LE(messages.size(), std::max<std::size_t>(options.most_messages, 64));
    for (const Message& message : messages) {
      EXPECT_LE(message.bytes, options.largest_message);
      EXPECT_NE(message.from, message.to);
    }
  }
}

class GpuShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(GpuShards, bring_every_byte_of_every_policy_in_any_order_that_waits_allow) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), gpu_refits);
  std::map<std::string_view, int> run;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Refit refit = hosted_refit(seed);
    for (const Policy& policy : policies()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " + std::string(policy.name));
      const PlanResult result = policy.make(refit);
      const Plan* plan = std::get_if<Plan>(&result);
      if (plan == nullptr) continue;
      ++run[policy.name];
      const Program program(refit, *plan);
      const ScheduleOptions options = small_options(seed);
      const GpuSchedule schedule =
          make_schedule(program, static_cast<std::uint32_t>(1 + (seed + 1) % 4), options);
      expect_limits(schedule, options);
      for (std::uint64_t order = 0; order < 3; ++order) {
        const test::InterpretedRun found =
            test::interpret(program, schedule, seed * 10 + order, static_cast<std::uint32_t>(order));
        EXPECT_TRUE(found.right()) << found.fault << (found.stalled ? "stalled" : "") << found.wrong;
      }
    }
  }
  // NCCL M2N's planner serves few of these layouts.
  for (const char* policy : {"golden", "gather-broadcast", "p2p", "striped", "balanced"})
    EXPECT_GT(run[policy], 0) << policy;
}
INSTANTIATE_TEST_SUITE_P(Gpu, GpuShards, ::testing::Range<std::uint64_t>(0, test::shards));

TEST(GpuSchedule, brings_every_byte_of_all_policies_for_a_scenario) {
  const std::filesystem::path file = project_folder() / "scenarios/cases/fused-attention.yaml";
  const Refit refit = resolve(read_scenario(file));
  for (const Policy& policy : policies()) {
    SCOPED_TRACE(policy.name);
    const PlanResult result = policy.make(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    ASSERT_NE(plan, nullptr);
    const Program program(refit, *plan);
    for (const std::int64_t direct : {std::int64_t{1}, std::int64_t{1} << 30}) {
      ScheduleOptions options;
      options.slot_bytes = 1 << 16;
      options.direct_bytes = direct;
      const GpuSchedule schedule = make_schedule(program, 2, options);
      EXPECT_GT(schedule.crossing_bytes, 0);
      EXPECT_TRUE(test::interpret(program, schedule, 5).right());
    }
  }
}

std::optional<Plan> plan_of(const Refit& refit, std::string_view name) {
  PlanResult result = find_policy(name)->make(refit);
  if (Plan* plan = std::get_if<Plan>(&result)) return std::move(*plan);
  return std::nullopt;
}

TEST(GpuSchedule, without_its_waits_goes_wrong_in_some_order) {
  std::size_t faulty = 0, judged = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Refit refit = hosted_refit(seed);
    const std::optional<Plan> plan = plan_of(refit, "balanced");
    if (!plan) continue;
    const Program program(refit, *plan);
    GpuSchedule schedule = make_schedule(program, 2, small_options(seed));
    if (schedule.waits.empty()) continue;
    ++judged;
    for (Launch& launch : schedule.launches) launch.waits_begin = launch.waits_end;
    for (std::uint64_t order = 0; order < 8; ++order) {
      if (test::interpret(program, schedule, order).right()) continue;
      ++faulty;
      break;
    }
  }
  EXPECT_GT(judged, 10U);
  EXPECT_GT(faulty * 2, judged);
}

TEST(GpuSchedule, sends_nothing_where_there_is_one_gpu) {
  const Refit refit = hosted_refit(3);
  const std::optional<Plan> plan = plan_of(refit, "golden");
  ASSERT_TRUE(plan);
  const Program program(refit, *plan);
  const GpuSchedule schedule = make_schedule(program, 1);
  EXPECT_TRUE(schedule.messages.empty());
  EXPECT_EQ(schedule.crossing_bytes, 0);
  EXPECT_TRUE(test::interpret(program, schedule, 1).right());
}

TEST(GpuSchedule, of_a_broadcast_carries_each_byte_to_a_gpu_once) {
  // One rank holds all, four ranks are to have all of it, on one other GPU.
  TensorSpec tensor;
  tensor.name = "w";
  tensor.source = {{64, 32}, Dtype::bf16, contiguous_mesh({1}, {0}), {Placement{}}};
  tensor.target = {{64, 32}, Dtype::bf16, contiguous_mesh({4}, {1}), {Placement{}}};
  const Refit refit = test::make_refit({{tensor}, 5});
  const std::optional<Plan> plan = plan_of(refit, "golden");
  ASSERT_TRUE(plan);
  const Program program(refit, *plan);
  const GpuSchedule schedule = make_schedule(program, 2);
  EXPECT_EQ(schedule.crossing_bytes, 64 * 32 * 2);
  EXPECT_TRUE(test::interpret(program, schedule, 7).right());
}

TEST(GpuSchedule, joins_messages_that_continue_each_other_on_both_sides) {
  // Two tensors of 4 KiB lie one behind the other on both ranks, and go in one group.
  std::vector<TensorSpec> tensors(2);
  for (TensorSpec& tensor : tensors) {
    tensor.name = &tensor == tensors.data() ? "a" : "b";
    tensor.source = {{64, 32}, Dtype::bf16, contiguous_mesh({1}, {0}), {Placement{}}};
    tensor.target = {{64, 32}, Dtype::bf16, contiguous_mesh({1}, {1}), {Placement{}}};
  }
  const Refit refit = test::make_refit({tensors, 2});
  const std::optional<Plan> plan = plan_of(refit, "balanced");
  ASSERT_TRUE(plan);
  const Program program(refit, *plan);
  ScheduleOptions options;
  options.direct_bytes = 1;
  const GpuSchedule joined = make_schedule(program, 2, options);
  EXPECT_EQ(joined.messages.size(), 1U);
  EXPECT_TRUE(test::interpret(program, joined, 5).right());
  options.largest_message = 4096;  // no room for both
  const GpuSchedule apart = make_schedule(program, 2, options);
  EXPECT_EQ(apart.messages.size(), 2U);
  EXPECT_TRUE(test::interpret(program, apart, 5).right());
}

TEST(GpuSchedule, keeps_what_is_large_and_contiguous_out_of_slots) {
  const Refit refit = hosted_refit(6);
  const std::optional<Plan> plan = plan_of(refit, "p2p");
  ASSERT_TRUE(plan);
  const Program program(refit, *plan);
  ScheduleOptions options;
  options.direct_bytes = 1 << 30;
  const GpuSchedule all_packed = make_schedule(program, 2, options);
  EXPECT_GT(all_packed.arena_bytes[0], all_packed.folding.memory[0]);
  options.direct_bytes = 1;
  const GpuSchedule direct = make_schedule(program, 2, options);
  const auto packed = [](const GpuSchedule& schedule) {
    return schedule.moves[0].size() + schedule.moves[1].size();
  };
  EXPECT_LT(packed(direct), packed(all_packed));
}

}  // namespace
}  // namespace isthmus::hw
