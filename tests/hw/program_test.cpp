#include "hw/program.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/error.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

using ::testing::HasSubstr;

/// Shards that stand alone; those that views place in one live buffer lie where they lie in it.
bool aligned(const Refit& refit, const std::vector<Shard>& shards,
             std::optional<FusedView> TensorViews::*side) {
  return std::all_of(shards.begin(), shards.end(), [&](const Shard& shard) {
    const bool fused = !refit.views.empty() && refit.views[shard.tensor.index()].*side;
    return fused || shard.offset.value % arena_alignment == 0;
  });
}

RC_GTEST_PROP(Program, keeps_shards_apart_and_all_moves_inside_the_arenas, (std::uint64_t seed)) {
  const auto refit_case = *test::refit_cases();
  const Refit refit = test::make_refit(refit_case);
  const Plan plan = test::build_plan(refit, test::options_of(seed));
  const Program program(refit, plan);
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
    std::vector<Shard> shards = program.sources({rank});
    RC_ASSERT(aligned(refit, shards, &TensorViews::source));
    RC_ASSERT(aligned(refit, program.targets({rank}), &TensorViews::target));
    shards.insert(shards.end(), program.targets({rank}).begin(), program.targets({rank}).end());
    std::sort(shards.begin(), shards.end(),
              [](const Shard& a, const Shard& b) { return a.offset < b.offset; });
    Bytes end;
    for (const Shard& shard : shards) {
      RC_ASSERT(shard.offset >= end);
      RC_ASSERT(shard.bytes.value > 0);
      end = shard.offset + shard.bytes;
    }
    RC_ASSERT(end <= program.arena({rank}).staging);
    RC_ASSERT(program.arena({rank}).staging <= program.arena({rank}).size);
  }
  for (std::uint32_t i = 0; i < program.operations().list.size(); ++i) {
    for (const Transfer& transfer : program.transfers(i)) {
      std::int64_t source = transfer.move.source + transfer.move.run;
      std::int64_t target = transfer.move.target + transfer.move.run;
      for (const Loop& loop : transfer.move.loops) {
        source += (loop.count - 1) * loop.source_stride;
        target += (loop.count - 1) * loop.target_stride;
      }
      RC_ASSERT(transfer.move.source >= 0 && source <= program.arena(transfer.from).size.value);
      RC_ASSERT(target <= program.arena(transfer.to).size.value);
      const std::vector<Shard>& read_only = program.sources(transfer.to);
      const Bytes writable = read_only.empty() ? Bytes{} : read_only.back().offset + read_only.back().bytes;
      RC_ASSERT(transfer.move.target >= writable.value);
    }
  }
}

RC_GTEST_PROP(Program, has_every_step_in_one_operation_and_moves_what_the_operation_counts,
              (std::uint64_t seed)) {
  const auto refit_case = *test::refit_cases();
  const Refit refit = test::make_refit(refit_case);
  const Plan plan = test::build_plan(refit, test::options_of(seed));
  const Program program(refit, plan);
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> seen;
  for (std::uint32_t i = 0; i < program.operations().list.size(); ++i) {
    const Operation& operation = program.operations().list[i];
    RC_ASSERT(program.steps(i).size() == operation.pieces);
    for (const ProgramStep& step : program.steps(i)) ++seen[{step.instance, step.step}];
    if (is_collective(operation.kind)) continue;
    std::int64_t bytes = 0;
    for (const Transfer& transfer : program.transfers(i)) {
      RC_ASSERT(transfer.from == operation.source);
      RC_ASSERT(transfer.to == operation.target);
      bytes += transfer.move.bytes();
    }
    RC_ASSERT(bytes == operation.bytes.value);
  }
  RC_ASSERT(seen.size() == plan.step_count());
  RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 1; }));
}

class ProgramFixture : public test::CheckFixture {
 protected:
  Step step(StepKind kind, Buffer from, Buffer to, Region region) const {
    Step made;
    made.kind = kind;
    made.from = from;
    made.to = to;
    made.region = region;
    return made;
  }
};

TEST_F(ProgramFixture, a_gather_takes_each_part_from_the_member_that_holds_it) {
  refit({test::tensor("w", {4}, {2, 0, 0}, {2, 2})}, 4);
  Step gather = step(StepKind::all_gather, Buffer::source, Buffer::staging, test::box({0}, {4}));
  plan_.patterns[0].members = {{LocalRank::source(0), LocalRank::source(1)}};
  add(gather);
  const Program program(*refit_, plan_);
  const std::vector<Transfer> transfers = program.transfers(0);
  ASSERT_EQ(transfers.size(), 4U);  // each member its own part as well: the buffers differ
  EXPECT_EQ(transfers[0].from, transfers[0].to);
  EXPECT_EQ(transfers[1].from, Rank{1});
  EXPECT_EQ(transfers[1].to, Rank{0});
  EXPECT_EQ(transfers[1].move.target - transfers[0].move.target, 4);
}

TEST_F(ProgramFixture, a_gather_in_place_moves_only_what_a_member_lacks) {
  refit({test::tensor("w", {4}, {1, 0}, {2, 1})}, 3);
  for (std::uint32_t i = 0; i < 2; ++i) {
    Step send = step(StepKind::send, Buffer::source, Buffer::target, test::box({2 * i}, {2 * i + 2}));
    send.source = LocalRank::source(0);
    send.target = LocalRank::target(i);
    add(send);
  }
  Step gather = step(StepKind::all_gather, Buffer::target, Buffer::target, test::box({0}, {4}));
  plan_.patterns[0].members = {{LocalRank::target(0), LocalRank::target(1)}};
  gather.group = 1;
  add(gather, {0, 1});
  const Program program(*refit_, plan_);
  const std::vector<Transfer> transfers = program.transfers(2);
  ASSERT_EQ(transfers.size(), 2U);
  EXPECT_EQ(transfers[0].from, Rank{2});
  EXPECT_EQ(transfers[0].to, Rank{1});
  EXPECT_EQ(transfers[0].move.bytes(), 4);
}

TEST_F(ProgramFixture, the_root_of_a_broadcast_keeps_its_own_target_and_fills_its_staging) {
  refit({test::tensor("w", {4}, {1, 0}, {2, 1})}, 3);
  plan_.patterns[0].members = {{LocalRank::source(0), LocalRank::target(0), LocalRank::target(1)}};
  add(step(StepKind::broadcast, Buffer::source, Buffer::target, test::box({0}, {4})));
  EXPECT_EQ(Program(*refit_, plan_).transfers(0).size(), 2U);
  plan_.patterns[0].steps[0].to = Buffer::staging;
  EXPECT_EQ(Program(*refit_, plan_).transfers(0).size(), 3U);
}

TEST_F(ProgramFixture, names_what_a_rank_does_not_have) {
  refit({test::tensor("w", {4}, {2, 0, 0}, {1, 2})}, 3);
  Step send = step(StepKind::send, Buffer::source, Buffer::target, test::box({1}, {3}));
  send.source = LocalRank::source(0);
  send.target = LocalRank::target(0);
  add(send);
  const Program program(*refit_, plan_);
  try {
    (void)program.transfers(0);
    ADD_FAILURE() << "it was made";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 0 of tensor w (send, rank 0 -> rank 2): [1:3] is not in the "
                                        "source buffer of rank 0, which is [0:2]"));
  }
}

TEST_F(ProgramFixture, staging_must_fit_into_its_buffer) {
  refit({test::tensor("w", {4}, {1, 0}, {1, 1})}, 2);
  Step send = step(StepKind::send, Buffer::source, Buffer::staging, test::box({0}, {4}));
  send.source = LocalRank::source(0);
  send.target = LocalRank::target(0);
  add(send);
  plan_.buffers = {{"pool", {10}}};
  plan_.instances[0].buffer = 0;
  plan_.instances[0].offset = {2};
  EXPECT_EQ(Program(*refit_, plan_).arena({1}).size, Bytes{512});  // the target shard, ten bytes of staging
  plan_.instances[0].offset = {4};
  EXPECT_THROW(Program(*refit_, plan_), InputError);
}

TEST_F(ProgramFixture, says_who_is_to_bring_an_element) {
  refit({test::tensor("w", {4}, {2, 0, 0}, {1, 2})}, 3);
  plan_ = std::get<Plan>(plan_p2p(*refit_));
  const Program program(*refit_, plan_);
  const auto second = program.writer_of({0}, test::box({3}, {4}), {2});
  ASSERT_TRUE(second);
  EXPECT_THAT(program.describe(*second), HasSubstr("(send, rank 1 -> rank 2)"));
  EXPECT_FALSE(program.writer_of({0}, test::box({3}, {4}), {1}));
}

}  // namespace
}  // namespace isthmus::hw
