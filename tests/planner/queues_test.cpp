// The rule against a twin that asks it of one operation by looking at all others; which queues are merged.

#include "planner/queues.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Indices = std::vector<std::uint32_t>;

std::vector<Rank> ranks_of(const Operations& operations, const Operation& operation) {
  if (operations.collective(operation)) return operations.members[operation.members];
  if (operation.source == operation.target) return {operation.source};
  return {operation.source, operation.target};
}

/// The rule, asked of one operation by looking at all others.
bool may_run(const Operations& operations, const std::set<std::uint32_t>& complete, std::uint32_t index) {
  const Operation& operation = operations.list[index];
  for (const std::uint32_t earlier : operations.dependencies(operation))
    if (complete.count(earlier) == 0) return false;
  for (const Rank rank : ranks_of(operations, operation)) {
    std::set<std::uint32_t> unfinished, all;  // earlier groups of this rank on this lane
    for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
      const Operation& other = operations.list[i];
      if (other.lane != operation.lane || other.group >= operation.group) continue;
      for (const Rank member : ranks_of(operations, other)) {
        if (member != rank) continue;
        all.insert(other.group);
        if (complete.count(i) == 0) unfinished.insert(other.group);
      }
    }
    // Groups are done in order: what stands before the first unfinished one is.
    const auto first = unfinished.empty() ? all.end() : all.find(*unfinished.begin());
    const auto open = static_cast<std::uint32_t>(std::distance(first, all.end()));
    if (open >= operations.lanes[operation.lane.index()].window) return false;
  }
  return true;
}

/// By rank and lane: the operations there.
std::map<std::pair<std::uint32_t, std::uint32_t>, Indices> all_queues(const Operations& operations) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Indices> queues;
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    for (const Rank rank : ranks_of(operations, operation))
      queues[{rank.value, operation.lane.value}].push_back(i);
  }
  return queues;
}

Operations random_operations(std::uint64_t seed) {
  const Refit refit = test::make_refit(*test::refit_cases());
  return expand(refit, test::build_plan(refit, test::options_of(seed)));
}

RC_GTEST_PROP(Queues, open_exactly_what_the_rule_allows, (std::uint64_t seed)) {
  const Operations operations = random_operations(seed);
  RC_PRE(operations.list.size() <= 60U);
  const QueuePlan plan(operations);
  RC_CLASSIFY(plan.merged() > 0, "queues that stand for others");
  Queues queues(plan);
  Indices ready;
  std::set<std::uint32_t> complete;
  queues.begin(ready);
  while (!ready.empty()) {
    for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
      const bool said = std::find(ready.begin(), ready.end(), i) != ready.end();
      RC_ASSERT(said == (complete.count(i) == 0 && may_run(operations, complete, i)));
    }
    const std::size_t which = *rc::gen::inRange<std::size_t>(0, ready.size());
    const std::uint32_t next = ready[which];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(which));
    complete.insert(next);
    queues.complete(next, ready);
  }
  RC_ASSERT(queues.waiting() == 0U);
}

RC_GTEST_PROP(QueuePlan, by_place_opens_the_same_operations_in_the_same_order, (std::uint64_t seed)) {
  const Operations operations = random_operations(seed);
  const QueuePlan plan(operations);
  const QueuePlan placed = plan.by_place();
  const Indices& order = plan.order();
  RC_ASSERT(order.size() == operations.list.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Operation& here = operations.list[order[place]];
    const auto index = static_cast<std::uint32_t>(place);
    RC_ASSERT(placed.group_size(index) == plan.group_size(order[place]));
    if (place == 0) continue;
    const Operation& before = operations.list[order[place - 1]];
    RC_ASSERT(std::tie(before.lane, before.group, order[place - 1]) <
              std::tie(here.lane, here.group, order[place]));
  }
  Queues queues(plan), queues_by_place(placed);
  Indices ready, ready_by_place;
  queues.begin(ready);
  queues_by_place.begin(ready_by_place);
  while (!ready.empty()) {
    RC_ASSERT(ready.size() == ready_by_place.size());
    for (std::size_t i = 0; i < ready.size(); ++i) RC_ASSERT(order[ready_by_place[i]] == ready[i]);
    const auto which = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, ready.size()));
    const std::uint32_t next = ready[to_size(which)], next_by_place = ready_by_place[to_size(which)];
    ready.erase(ready.begin() + which);
    ready_by_place.erase(ready_by_place.begin() + which);
    queues.complete(next, ready);
    queues_by_place.complete(next_by_place, ready_by_place);
  }
  RC_ASSERT(queues_by_place.waiting() == 0U);
}

RC_GTEST_PROP(QueuePlan, lets_one_queue_stand_for_all_with_the_same_operations, (std::uint64_t seed)) {
  const Operations operations = random_operations(seed);
  std::set<Indices> distinct;
  const auto queues = all_queues(operations);
  for (const auto& entry : queues) distinct.insert(entry.second);
  RC_ASSERT(QueuePlan(operations).merged() == queues.size() - distinct.size());
}

RC_GTEST_PROP(QueuePlan, counts_the_group_of_the_busiest_rank_whatever_is_merged, (std::uint64_t seed)) {
  const Operations operations = random_operations(seed);
  const QueuePlan plan(operations);
  const auto queues = all_queues(operations);
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    std::uint32_t busiest = 0;
    for (const Rank rank : ranks_of(operations, operation)) {
      const Indices& queue = queues.at({rank.value, operation.lane.value});
      const auto same = std::count_if(queue.begin(), queue.end(), [&](std::uint32_t other) {
        return operations.list[other].group == operation.group;
      });
      busiest = std::max(busiest, static_cast<std::uint32_t>(same));
    }
    RC_ASSERT(plan.group_size(i) == busiest);
  }
}

/// Operations by hand: lanes of window 1, and one list of members.
class ByHand {
 public:
  explicit ByHand(std::size_t lanes = 1) {
    operations_.lanes.resize(lanes);
    operations_.members = {{Rank{0}, Rank{1}, Rank{2}, Rank{3}}};
  }
  void broadcast(std::uint32_t group, std::uint32_t lane = 0) {
    add(StepKind::broadcast, Rank{0}, Rank{0}, group, lane);
  }
  void send(std::uint32_t from, std::uint32_t to, std::uint32_t group, std::uint32_t lane = 0) {
    add(StepKind::send, Rank{from}, Rank{to}, group, lane);
  }
  const Operations& operations() const { return operations_; }

 private:
  void add(StepKind kind, Rank from, Rank to, std::uint32_t group, std::uint32_t lane) {
    Operation operation;
    operation.kind = kind;
    operation.source = from;
    operation.target = to;
    operation.group = group;
    operation.lane = LaneId{lane};
    operations_.list.push_back(operation);
  }
  Operations operations_;
};

Indices started(Queues& queues) {
  Indices ready;
  queues.begin(ready);
  return ready;
}
Indices after(Queues& queues, std::uint32_t operation) {
  Indices ready;
  queues.complete(operation, ready);
  return ready;
}

TEST(QueuePlan, merges_the_queues_of_all_members_of_a_communicator) {
  ByHand made;
  made.broadcast(0);
  made.broadcast(1);
  const QueuePlan plan(made.operations());
  EXPECT_EQ(plan.merged(), 3U);
  Queues queues(plan);
  EXPECT_THAT(started(queues), ElementsAre(0));
  EXPECT_THAT(after(queues, 0), ElementsAre(1));
  EXPECT_THAT(after(queues, 1), IsEmpty());
  EXPECT_EQ(queues.waiting(), 0U);
}

TEST(QueuePlan, keeps_the_queue_of_a_member_with_another_operation_between) {
  ByHand made;
  made.broadcast(0);
  made.broadcast(2);
  made.send(3, 4, 1);  // of member 3, which others in the same communicator must wait for
  const QueuePlan plan(made.operations());
  EXPECT_EQ(plan.merged(), 2U);  // members 0, 1 and 2
  Queues queues(plan);
  EXPECT_THAT(started(queues), UnorderedElementsAre(0));
  EXPECT_THAT(after(queues, 0), ElementsAre(2));
  EXPECT_THAT(after(queues, 2), ElementsAre(1));
}

TEST(QueuePlan, keeps_lanes_of_equal_ranks_apart) {
  ByHand made(2);
  made.broadcast(0, 0);
  made.broadcast(1, 1);
  const QueuePlan plan(made.operations());
  EXPECT_EQ(plan.merged(), 6U);  // three on each lane
  Queues queues(plan);
  EXPECT_THAT(started(queues), UnorderedElementsAre(0, 1));
}

TEST(QueuePlan, orders_groups_whose_numbers_lie_far_apart) {
  ByHand made(2);
  made.send(0, 1, 4'000'000'000);
  made.send(0, 1, 7, 1);
  made.send(0, 1, 4'000'000'000);
  made.send(0, 1, 0);
  EXPECT_THAT(QueuePlan(made.operations()).order(), ElementsAre(3, 0, 2, 1));
}

TEST(QueuePlan, starts_again_as_often_as_wanted) {
  ByHand made;
  made.send(0, 1, 0);
  made.send(0, 1, 1);
  const QueuePlan plan(made.operations());
  for (int run = 0; run < 2; ++run) {
    Queues queues(plan);
    EXPECT_THAT(started(queues), ElementsAre(0));
    EXPECT_THAT(after(queues, 0), ElementsAre(1));
  }
}

TEST(QueuePlan, leaves_operations_that_wait_for_each_other_waiting) {
  ByHand made;  // the dependency wants the groups the other way round
  made.send(0, 1, 0);
  made.send(0, 1, 1);
  Operations operations = made.operations();
  operations.after = {1};
  operations.list[0].after_begin = 0;
  operations.list[0].after_end = 1;
  const QueuePlan plan(operations);
  Queues queues(plan);
  EXPECT_THAT(started(queues), IsEmpty());
  EXPECT_EQ(queues.waiting(), 2U);
}

}  // namespace
}  // namespace isthmus
