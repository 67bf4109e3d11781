// Every policy on random refits, replayed in host memory: every byte is the right one, and all policies end
// with the same bytes. Planted faults are found and named; nothing hangs.

#include "hw/host.hpp"

#include <cstdio>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/host_replay.hpp"
#include "tests/support/lending_refit.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::hw {
namespace {

using test::Replayed;
using test::TargetBytes;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t refits = 800;  // of all shards

/// Ranks on hosts of eight GPUs: in order, with four on each host, or two to a GPU.
Refit placed_refit(std::uint64_t seed) {
  Refit refit = test::make_refit(test::sample_case(seed));
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank) {
    const std::uint32_t spread = (rank * 4) % 128 + rank * 4 / 128;
    refit.gpu_of_rank[rank] = {seed % 3 == 0 ? rank : seed % 3 == 1 ? spread : rank / 2};
  }
  return refit;
}

Bytes target_size(const Refit& refit) {
  Bytes sum;
  for (const RefitEntry& entry : refit.tensors) {
    const Layout& layout = refit.geometries[entry.geometry].target;
    for (const Region& region : layout.regions()) sum += layout.bytes(region);
  }
  return sum;
}

class HostShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(HostShards, replay_every_policy_byte_for_byte_and_to_the_end_of_golden) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), refits);
  std::map<std::string_view, int> replayed;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const Refit refit = placed_refit(seed);
    const PlanResult golden = plan_golden(refit);
    TargetBytes expected;
    if (const Plan* plan = std::get_if<Plan>(&golden)) expected = test::target_bytes(refit, *plan);
    for (const Policy& policy : policies()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " + std::string(policy.name));
      const PlanResult result = policy.make(refit);
      const Plan* plan = std::get_if<Plan>(&result);
      if (plan == nullptr) continue;
      ++replayed[policy.name];
      const Replayed replay = test::replay(refit, *plan, seed, 1 + seed % 3);
      EXPECT_TRUE(replay.right()) << replay.refused << replay.stopped;
      EXPECT_TRUE(replay.measurement.byte_exact());
      EXPECT_EQ(replay.measurement.verified, target_size(refit));
      for (const Mismatch& mismatch : replay.measurement.mismatches) ADD_FAILURE() << mismatch.message;
      if (!expected.empty()) {
        EXPECT_TRUE(test::target_bytes(refit, *plan, seed + 1) == expected);
      }
    }
  }
  for (const auto& [policy, count] : replayed) {
    std::printf("%.*s: %d\n", static_cast<int>(policy.size()), policy.data(), count);
    EXPECT_GT(count, 0);
  }
  EXPECT_GE(replayed.size(), 5U);  // M2N's limits refuse most random refits: tests/report has whole models
}
INSTANTIATE_TEST_SUITE_P(Host, HostShards, ::testing::Range<std::uint64_t>(0, test::shards));

TEST(Host, replays_any_proven_plan_with_its_windows_lanes_and_shared_staging) {
  const test::SeedRange seeds = test::seeds_of_shard(0, 4800);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const bool reusing = seed % 3 == 0;
    const Refit refit = test::make_refit(reusing ? test::repeated_case(seed) : test::sample_case(seed));
    const Plan plan =
        test::build_plan(refit, reusing ? test::reusing_options_of(seed) : test::options_of(seed));
    ASSERT_TRUE(check(refit, plan).proven());
    for (std::uint64_t order = 0; order < 3; ++order) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", order " + std::to_string(order));
      const Replayed replay = test::replay(refit, plan, order, 1 + order);
      EXPECT_TRUE(replay.measurement.byte_exact()) << replay.refused << replay.stopped;
    }
  }
}

/// One tensor [4, 6], rows on ranks 0 and 1, columns on ranks 2 to 4.
class HostFaults : public test::CheckFixture {
 protected:
  HostFaults() {
    refit({test::tensor("w", {4, 6}, {2, 0, 0}, {3, 2, 1})}, 5);
    plan_ = std::get<Plan>(plan_p2p(*refit_));
  }
  RunOptions options(std::int64_t milliseconds) const {
    RunOptions options;
    options.deadline = {milliseconds * 1'000'000'000};
    return options;
  }
};

TEST_F(HostFaults, a_flipped_bit_is_found_and_its_step_and_rank_named) {
  const Program program(*refit_, plan_);
  HostSettings settings;
  settings.faults.corrupt_operation = 3;
  const Measurement measurement = HostExecutor(settings).run(program, options(10'000));
  EXPECT_FALSE(measurement.byte_exact());
  ASSERT_EQ(measurement.mismatch_count, 1U);
  const Mismatch& mismatch = measurement.mismatches.front();
  const ProgramStep step = program.steps(3).front();
  EXPECT_EQ(mismatch.rank, program.operations().list[3].target);
  EXPECT_EQ(mismatch.expected ^ mismatch.found, 0x100U);
  EXPECT_THAT(mismatch.message, AllOf(HasSubstr("tensor w, element ("), HasSubstr("on rank "),
                                      HasSubstr(program.describe(step))));
}

TEST_F(HostFaults, an_operation_that_never_ends_is_stopped_by_the_deadline_and_named) {
  const Program program(*refit_, plan_);
  for (const std::size_t threads : {1U, 4U}) {
    HostSettings settings;
    settings.threads = threads;
    settings.faults.stuck_operation = 2;
    try {
      (void)HostExecutor(settings).run(program, options(20));
      ADD_FAILURE() << "it ended";
    } catch (const SystemError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("not complete after 0.02 s"), HasSubstr("(rank 0;"),
                                      HasSubstr(program.describe(2))));
    }
  }
}

TEST_F(HostFaults, a_plan_that_waits_for_itself_is_stopped_at_once) {
  // Each of two ranks starts with what the other one has in its second group.
  refit({test::tensor("a", {2}, {1, 0}, {1, 1}), test::tensor("b", {2}, {1, 1}, {1, 0})}, 2);
  plan_ = {};
  plan_.lanes = {{"x", 1, false}, {"y", 1, false}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    plan_.patterns.emplace_back();
    plan_.instances.push_back({{i}, {i}, {i}, {1 - i}, {0}, 0});
  }
  Step step;
  step.source = LocalRank::source(0);
  step.target = LocalRank::target(0);
  step.region = test::box({0}, {1});
  add(step, {}, 0);
  Step second = step;
  second.region = test::box({1}, {2});
  second.group = 0;
  add(second, {0}, 0);
  step.group = 1;
  add(step, {}, 1);
  second.group = 2;
  add(second, {}, 1);
  EXPECT_TRUE(test::replay(*refit_, plan_).right());
  plan_.patterns[0].steps[0].group = 3;  // after the step that waits for it
  EXPECT_FALSE(check(*refit_, plan_).proven());
  EXPECT_THAT(test::replay(*refit_, plan_).stopped,
              AllOf(HasSubstr("4 operations wait for each other"), HasSubstr("tensor a")));
}

TEST_F(HostFaults, a_target_that_nobody_writes_holds_no_right_byte) {
  plan_.patterns.front().steps.pop_back();
  const Replayed replay = test::replay(*refit_, plan_);
  EXPECT_GT(replay.measurement.mismatch_count, 0U);
  EXPECT_THAT(replay.measurement.mismatches.front().message,
              AllOf(HasSubstr("which is what was there before"), HasSubstr("none does")));
}

TEST_F(HostFaults, weights_of_another_refit_are_told_apart) {
  plan_.version = 5;
  for (Instance& instance : plan_.instances) instance.version = 5;
  EXPECT_TRUE(test::replay(*refit_, plan_).right());
  plan_.instances.front().version = 4;
  EXPECT_GE(test::replay(*refit_, plan_).measurement.mismatch_count, 24U);
}

TEST_F(HostFaults, of_many_wrong_elements_some_are_listed_and_all_counted) {
  plan_.instances.front().version = 4;
  RunOptions few = options(10'000);
  few.most_mismatches = 3;
  const Program program(*refit_, plan_);
  const Measurement measurement = HostExecutor().run(program, few);
  EXPECT_EQ(measurement.mismatches.size(), 3U);
  EXPECT_EQ(measurement.mismatch_count, 24U);
}

TEST_F(HostFaults, runs_are_repeated_until_the_code_is_injective_and_asked_ones_are_timed) {
  const Program program(*refit_, plan_);
  RunOptions asked = options(10'000);
  asked.warm_up = 1;
  asked.repetitions = 3;
  const Measurement measurement = HostExecutor().run(program, asked);
  EXPECT_EQ(measurement.times.size(), 3U);
  EXPECT_EQ(measurement.passes_needed, 1U);  // 24 elements of two bytes
  EXPECT_EQ(measurement.timeline.end - Instant{}, measurement.fastest());
  EXPECT_LE(measurement.fastest(), measurement.median());
  EXPECT_EQ(measurement.moved, Bytes{48});
}

TEST(Host, timelines_keep_the_rule_of_timelines) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    const Plan plan = test::build_plan(refit, test::options_of(seed));
    const Timeline timeline = test::replay(refit, plan, 0, 2).measurement.timeline;
    const Operations operations = expand(refit, plan);
    ASSERT_EQ(timeline.spans.size(), operations.list.size());
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      const Span& span = timeline.spans[i];
      EXPECT_LE(span.ready, span.end);
      EXPECT_LE(span.end, timeline.end);
      if (span.cause != Span::no_cause) {
        EXPECT_LE(timeline.spans[span.cause].end, span.ready);
      }
      for (const std::uint32_t before : operations.dependencies(operations.list[i]))
        EXPECT_LE(timeline.spans[before].end, span.ready);
    }
  }
}

TEST(HostLending, brings_every_byte_through_lent_nics) {
  int lent = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Refit refit = test::lending_refit(seed, Relay::any);
    const Plan plan = std::get<Plan>(plan_balanced(refit));
    if (plan.lanes.size() < 3) continue;
    ++lent;
    const Replayed result = test::replay(refit, plan, seed, 1 + seed % 3);
    EXPECT_TRUE(result.right()) << seed << result.refused << result.stopped;
  }
  EXPECT_GT(lent, 10);
}

}  // namespace
}  // namespace isthmus::hw
