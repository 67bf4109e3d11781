#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;
using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Tensors of four BF16 elements from rank 0 to rank 1, each sent to staging (group 0 of its instance) and
/// unpacked from there (group 1), in eight bytes of one buffer that all of them share.
class CheckBuffers : public test::CheckFixture {
 protected:
  void staged(std::size_t tensors) {
    std::vector<TensorSpec> specs;
    for (std::size_t i = 0; i < tensors; ++i)
      specs.push_back(tensor(std::string(1, static_cast<char>('a' + i)), {4}, {1, 0}, {1, 1}));
    refit(specs, 2);
    plan_.buffers = {{"stage", {8}}};
    for (std::size_t i = 0; i < tensors; ++i) {
      send(0, 0, box({0}, {4}), 0, i).to = Buffer::staging;
      unpack(box({0}, {4}), {0}, i);
      plan_.instances[i].group = 2 * static_cast<std::uint32_t>(i);
      plan_.instances[i].buffer = 0;
    }
  }

  Step& unpack(const Region& region, const std::vector<std::uint32_t>& after, std::size_t pattern) {
    Step step;
    step.kind = StepKind::unpack;
    step.from = Buffer::staging;
    step.source = step.target = LocalRank::target(0);
    step.region = region;
    step.group = 1;
    return add(step, after, pattern);
  }

  static bool wrong_at_the_end(const test::TwinResult& result) { return !result.correct(); }

  void expect_proven_always() const {
    expect_proven();
    EXPECT_FALSE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
  }

  /// One violation of one step and one element, and some schedule shows it.
  void expect_violation(Fault fault, std::uint32_t step, std::int64_t element,
                        const std::string& message) const {
    const Proof result = proof();
    ASSERT_THAT(result.violations, SizeIs(1)) << ::testing::PrintToString(messages(result));
    EXPECT_EQ(result.violations[0].fault, fault);
    EXPECT_EQ(result.violations[0].message, message);
    EXPECT_THAT(result.violations[0].steps, ElementsAre(step));
    EXPECT_THAT(result.violations[0].element, ElementsAre(element));
    EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
  }
};

TEST_F(CheckBuffers, let_an_instance_follow_another_on_one_lane) {
  staged(3);
  expect_proven_always();
}

TEST_F(CheckBuffers, refuse_reuse_in_the_group_of_the_last_use) {
  staged(2);
  plan_.instances[1].group = 1;
  expect_violation(Fault::overwritten, 0, 0,
                   "tensor b, element (0) on rank 1: step 0 overwrites what tensor a staged in bytes 0 to 8 "
                   "of buffer stage "
                   "until its step 1, groups 0 to 1 and from 1 on; a lane must bring the second at least its "
                   "window of groups "
                   "after the first's last use");
}

TEST_F(CheckBuffers, refuse_reuse_on_lanes_that_do_not_order_it) {
  staged(2);
  plan_.instances[1].lane = {1};
  expect_violation(Fault::overwritten, 0, 0,
                   "tensor b, element (0) on rank 1: step 0 overwrites what tensor a staged in bytes 0 to 8 "
                   "of buffer stage "
                   "until its step 1, on lanes that do not order them; a lane must bring the second at least "
                   "its window of "
                   "groups after the first's last use");
  plan_.instances[1].offset = {8};
  plan_.buffers[0].size = {16};
  expect_proven_always();
}

TEST_F(CheckBuffers, count_a_window_in_the_groups_of_the_rank) {
  staged(2);
  plan_.lanes[0].window = 2;  // a's last use is the rank's second group, b's first write its third: one apart
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
  plan_.instances[1].group = 9;  // numbers do not count
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
}

TEST_F(CheckBuffers, let_an_instance_follow_when_the_window_of_groups_has_passed) {
  staged(3);
  plan_.lanes[0].window = 3;  // a's last use is group 1 of the rank, c's first write group 4
  plan_.instances[1].buffer = Instance::own_memory;
  expect_proven_always();
  plan_.lanes[0].window = 4;
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
}

TEST_F(CheckBuffers, see_groups_of_instances_with_a_schedule) {
  staged(2);
  plan_.schedule = {0, 3, 1, 2};  // b comes between a's two uses
  plan_.instances[0].schedule = 0;
  plan_.instances[1].schedule = 2;
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
  plan_.schedule = {0, 1, 2, 3};
  expect_proven_always();
}

TEST_F(CheckBuffers, see_a_write_in_the_last_group_that_there_is) {
  staged(2);
  plan_.instances[1].group = 0xFFFFFFFE;
  plan_.patterns[1].steps[0].group = 1;
  plan_.instances[0].group = 0xFFFFFFFE;  // a: groups max - 1 and max; b: both in max
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
}

TEST_F(CheckBuffers, see_through_operations_that_a_lane_joins) {
  staged(2);
  plan_.lanes[0].coalesce = true;
  plan_.instances[1].group = 0;  // both sends are one operation
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
  plan_.instances[1].offset = {8};
  plan_.buffers[0].size = {16};
  expect_proven_always();
}

TEST_F(CheckBuffers, look_at_the_rank_that_sends_out_of_staging) {
  // Rank 1 relays b from the bytes in which it got a.
  refit({tensor("a", {4}, {1, 0}, {1, 1}), tensor("b", {4}, {1, 0}, {1, 1})}, 2);
  plan_.buffers = {{"stage", {8}}};
  for (std::size_t i = 0; i < 2; ++i) {
    send(0, 0, box({0}, {4}), 0, i).to = Buffer::staging;
    Step relay;  // to itself, so that one rank is all there is to order
    relay.from = Buffer::staging;
    relay.source = relay.target = LocalRank::target(0);
    relay.region = box({0}, {4});
    relay.group = 1;
    add(relay, {0}, i);
    plan_.instances[i].buffer = 0;
    plan_.instances[i].group = static_cast<std::uint32_t>(i);  // a's relay and b's arrival in one group
  }
  EXPECT_EQ(proof().violations.at(0).fault, Fault::overwritten);
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
  plan_.instances[1].group = 2;
  expect_proven_always();
}

TEST_F(CheckBuffers, refuse_an_overlap_by_one_element) {
  staged(2);
  plan_.instances[1].lane = {1};
  plan_.instances[1].offset = {6};
  plan_.buffers[0].size = {14};
  EXPECT_THAT(messages(proof()), ElementsAre(::testing::HasSubstr("in bytes 6 to 8 of buffer stage")));
  EXPECT_TRUE(test::Twin(*refit_).under_some_schedule(plan_, wrong_at_the_end));
}

TEST_F(CheckBuffers, let_a_broadcast_read_staging_at_its_root_alone) {
  // b is broadcast out of staging on rank 1 to rank 2, whose own staging still holds a.
  refit({tensor("a", {4}, {1, 0}, {1, 2}), tensor("b", {4}, {1, 0}, {1, 2})}, 3);
  plan_.buffers = {{"stage", {8}}};
  send(0, 0, box({0}, {4}), 0, 0).to = Buffer::staging;
  unpack(box({0}, {4}), {0}, 0).group = 5;
  Step to_root;
  to_root.to = Buffer::staging;
  to_root.source = LocalRank::source(0);
  to_root.target = LocalRank::source(1);
  to_root.region = box({0}, {4});
  to_root.lane = 1;
  add(to_root, {}, 1);
  plan_.patterns[1].members = {{LocalRank::source(1), LocalRank::target(0)}};
  Step out;
  out.kind = StepKind::broadcast;
  out.from = Buffer::staging;
  out.source = LocalRank::source(1);
  out.region = box({0}, {4});
  out.lane = 1;
  out.group = 1;
  add(out, {0}, 1);
  for (Instance& instance : plan_.instances) instance.buffer = 0;
  expect_proven_always();
}

TEST_F(CheckBuffers, refuse_staging_that_does_not_fit) {
  staged(1);
  plan_.buffers[0].size = {7};
  expect_violation(Fault::buffer_too_small, 0, 3,
                   "tensor a, element (3) on rank 1: step 0 stages it, but the staging needs bytes 0 to 8 of "
                   "buffer stage, which has 7");
  plan_.buffers[0].size = {8};
  expect_proven_always();
  plan_.instances[0].offset = {2};
  expect_violation(
      Fault::buffer_too_small, 0, 3,
      "tensor a, element (3) on rank 1: step 0 stages it, but the staging needs bytes 2 to 10 of "
      "buffer stage, which has 8");
}

TEST_F(CheckBuffers, refuse_offsets_whose_end_cannot_be_counted) {
  staged(1);
  plan_.instances[0].offset = {std::numeric_limits<std::int64_t>::max() - 1};
  EXPECT_EQ(proof().violations.at(0).fault, Fault::buffer_too_small);
  EXPECT_FALSE(test::Twin(*refit_).run(plan_).correct());
}

TEST_F(CheckBuffers, name_the_step_that_stages_the_element) {
  staged(1);
  plan_.patterns[0].steps[0].region = box({0}, {2});
  plan_.patterns[0].steps[1].region = box({0}, {2});
  Step& more = send(0, 0, box({2}, {4}));
  more.to = Buffer::staging;
  unpack(box({2}, {4}), {2}, 0);
  plan_.buffers[0].size = {6};
  EXPECT_THAT(proof().violations.at(0).steps, ElementsAre(2));
  EXPECT_THAT(proof().violations.at(0).element, ElementsAre(3));
}

TEST_F(CheckBuffers, refuse_staging_that_begins_inside_an_element) {
  staged(1);
  plan_.buffers[0].size = {16};
  plan_.instances[0].offset = {3};
  expect_violation(
      Fault::not_aligned, 0, 0,
      "tensor a, element (0) on rank 1: step 0 stages it, but the staging begins at byte 3; a multiple "
      "of the element size 2 is needed");
  plan_.instances[0].offset = {4};
  expect_proven_always();
}

TEST_F(CheckBuffers, refuse_a_buffer_that_the_executor_cannot_count) {
  staged(1);
  plan_.buffers[0].size = {9};
  Limits limits;
  limits.largest_size = {8};
  const Proof result = proof(limits);
  EXPECT_THAT(messages(result), ElementsAre("buffer 0 (stage) - 9 bytes - 0 to 8 are allowed"));
  EXPECT_EQ(result.violations[0].fault, Fault::too_many_bytes);
  plan_.buffers[0].size = {8};
  EXPECT_TRUE(proof(limits).proven());
}

TEST_F(CheckBuffers, refuse_a_message_that_the_executor_cannot_count) {
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 2);
  send(0, 0, box({0}, {4}));
  Limits limits;
  limits.largest_size = {7};
  const Proof result = proof(limits);
  ASSERT_THAT(result.violations, SizeIs(1));
  EXPECT_EQ(result.violations[0].fault, Fault::too_many_bytes);
  EXPECT_THAT(result.violations[0].steps, ElementsAre(0));
  EXPECT_EQ(result.violations[0].message,
            "tensor t on rank 0: step 0 moves 8 bytes; at most 7 are allowed, so cut it into 2");
  limits.largest_size = {8};
  EXPECT_TRUE(proof(limits).proven());
}

TEST_F(CheckBuffers, refuse_a_buffer_that_does_not_exist) {
  staged(1);
  plan_.instances[0].buffer = 1;
  EXPECT_THAT(messages(proof()), ElementsAre("tensor a: instance 0 stages in buffer 1; there are 1"));
  plan_.instances[0].buffer = 0;
  plan_.instances[0].offset = {-2};
  EXPECT_THAT(messages(proof()), ElementsAre("tensor a: instance 0 stages at byte -2; 0 is the first"));
}

class CheckReach : public test::CheckFixture {};

TEST_F(CheckReach, refuses_a_put_into_another_domain) {
  refit({tensor("t", {4}, {1, 7}, {1, 8})}, 16);
  send(0, 0, box({0}, {4})).kind = StepKind::put;
  expect_fault(Fault::out_of_reach,
               "tensor t: step 0 puts from rank 7 into rank 8, which is in another NVLink domain; send it");
  EXPECT_THAT(proof().violations.at(0).steps, ElementsAre(0));
  plan_.patterns[0].steps[0].kind = StepKind::send;
  expect_proven();
}

TEST_F(CheckReach, lets_a_put_go_to_any_gpu_of_its_domain) {
  refit({tensor("t", {4}, {1, 0}, {1, 7})}, 8);
  send(0, 0, box({0}, {4})).kind = StepKind::put;
  expect_proven();
}

class CheckVersion : public test::CheckFixture {};

TEST_F(CheckVersion, refuses_an_instance_of_another_refit) {
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 2);
  send(0, 0, box({0}, {4}));
  plan_.version = 3;
  expect_fault(Fault::wrong_version, "tensor t: instance 0 moves version 0; the plan is for version 3");
  plan_.instances[0].version = 3;
  expect_proven();
}

/// Two replicas of one tensor; each gets a half into its target buffer, then they gather in place.
class CheckInPlace : public test::CheckFixture {
 protected:
  void halves(const std::vector<std::uint32_t>& after) {
    refit({tensor("t", {4}, {1, 0}, {2, 1})}, 3);
    send(0, 0, box({0}, {2}));
    send(0, 1, box({2}, {4}));
    plan_.patterns[0].members = {{LocalRank::target(0), LocalRank::target(1)}};
    Step gather;
    gather.kind = StepKind::all_gather;
    gather.from = Buffer::target;
    gather.region = box({0}, {4});
    gather.group = 1;
    add(gather, after);
  }
};

TEST_F(CheckInPlace, writes_to_a_member_what_it_lacks) {
  halves({0, 1});
  expect_proven();
}

TEST_F(CheckInPlace, counts_a_part_of_a_step_that_it_does_not_name_as_written_twice) {
  halves({0});
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(2)) << ::testing::PrintToString(messages(result));
  EXPECT_EQ(result.violations[0].fault, Fault::not_held);
  EXPECT_EQ(result.violations[1].fault, Fault::written_twice);
  EXPECT_EQ(result.violations[1].message,
            "tensor t, element (2) on rank 2: written twice, by steps 1 and 2; exactly once is allowed");
  EXPECT_GT(test::Twin(*refit_).run(plan_).twice, 0U);
}

TEST_F(CheckInPlace, does_not_know_a_part_through_others) {
  halves({0, 1});
  plan_.patterns[0].steps.pop_back();
  plan_.patterns[0].steps[1].after_begin = 0;  // the second half waits for the first
  plan_.patterns[0].steps[1].after_end = 1;
  plan_.patterns[0].after = {0};
  Step gather;
  gather.kind = StepKind::all_gather;
  gather.from = Buffer::target;
  gather.region = box({0}, {4});
  gather.group = 1;
  add(gather, {1});
  expect_fault(Fault::written_twice,
               "tensor t, element (0) on rank 1: written twice, by steps 0 and 2; exactly once is allowed");
}

TEST_F(CheckInPlace, leaves_alone_what_several_steps_brought) {
  halves({0, 1, 2});
  plan_.patterns[0].steps.pop_back();
  plan_.patterns[0].after.clear();
  plan_.patterns[0].steps[0].region = box({0}, {1});
  send(0, 0, box({1}, {2}));
  Step gather;
  gather.kind = StepKind::all_gather;
  gather.from = Buffer::target;
  gather.region = box({0}, {4});
  gather.group = 1;
  add(gather, {0, 1, 2});
  expect_proven();
}

TEST_F(CheckInPlace, writes_into_staging_instead_and_leaves_the_target_incomplete) {
  halves({0, 1});
  plan_.patterns[0].steps[2].to = Buffer::staging;
  const Proof result = proof();
  ASSERT_THAT(result.violations, SizeIs(2));
  EXPECT_EQ(result.violations[0].fault, Fault::never_written);
  EXPECT_EQ(test::Twin(*refit_).run(plan_).missing, 4U);
}

class CheckShortWays : public test::CheckFixture {};

TEST_F(CheckShortWays, pack_and_unpack_have_their_directions) {
  refit({tensor("t", {4}, {1, 0}, {1, 0})}, 1);
  Step pack;
  pack.kind = StepKind::pack;
  pack.to = Buffer::staging;
  pack.source = pack.target = LocalRank::source(0);
  pack.region = box({0}, {4});
  add(pack);
  Step unpack = pack;
  unpack.kind = StepKind::unpack;
  unpack.from = Buffer::staging;
  unpack.to = Buffer::target;
  unpack.group = 1;
  add(unpack, {0});
  expect_proven();
  plan_.patterns[0].steps[0].kind = StepKind::unpack;
  expect_fault(Fault::malformed,
               "tensor t: step 0 unpacks from source to staging; it goes from staging to target");
  plan_.patterns[0].steps[0].kind = StepKind::pack;
  plan_.patterns[0].steps[1].kind = StepKind::pack;
  expect_fault(Fault::malformed,
               "tensor t: step 1 packs from staging to target; a pack goes from source or target to staging");
}

}  // namespace
}  // namespace isthmus
