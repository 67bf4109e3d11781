#include "planner/stand_ins.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus {
namespace {

using testing::ElementsAre;
using Queue = std::pair<std::uint32_t, std::uint32_t>;  // rank, lane

std::vector<std::uint32_t> lane_by_lane(const Operations& operations) {
  std::vector<std::uint32_t> order(operations.list.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return operations.list[a].lane < operations.list[b].lane;
  });
  return order;
}

std::vector<Rank> ranks_of(const StandIns& ranks, std::uint32_t operation) {
  std::vector<Rank> visited;
  ranks.for_each(operation, [&](Rank rank) { visited.push_back(rank); });
  return visited;
}

/// Who takes part in what, without a thought about who stands for whom.
std::map<Queue, std::set<std::uint32_t>> plain_queues(const Operations& operations) {
  std::map<Queue, std::set<std::uint32_t>> queues;
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    std::vector<Rank> ranks{operation.source, operation.target};
    if (operations.collective(operation)) ranks = operations.members[operation.members];
    for (const Rank rank : ranks) queues[{rank.value, operation.lane.value}].insert(i);
  }
  return queues;
}

RC_GTEST_PROP(StandIns, leave_out_only_ranks_whose_operations_a_lower_one_has_too, (std::uint64_t seed)) {
  const Refit refit = test::make_refit(*test::refit_cases());
  const Operations operations = expand(refit, test::build_plan(refit, test::options_of(seed)));
  const StandIns ranks(operations, lane_by_lane(operations));
  std::map<Queue, std::set<std::uint32_t>> kept;
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    for (const Rank rank : ranks_of(ranks, i)) {
      RC_ASSERT((kept[{rank.value, operations.list[i].lane.value}].insert(i).second));
    }
  }
  const auto all = plain_queues(operations);
  for (const auto& [queue, listed] : kept) RC_ASSERT(listed == all.at(queue));
  std::size_t others = 0;
  for (const auto& [queue, listed] : all) {
    if (kept.count(queue) > 0) continue;
    ++others;
    const auto found = std::find_if(kept.begin(), kept.end(), [&, q = queue, l = listed](const auto& entry) {
      return entry.first.second == q.second && entry.first.first < q.first && entry.second == l;
    });
    RC_ASSERT(found != kept.end());
  }
  RC_ASSERT(ranks.others() == others);
}

Operations broadcasts(std::vector<std::vector<Rank>> lists) {
  Operations operations;
  operations.members = std::move(lists);
  operations.lanes.resize(2);
  for (std::uint32_t list = 0; list < operations.members.size(); ++list) {
    Operation operation;
    operation.kind = StepKind::broadcast;
    operation.members = list;
    operation.source = operation.target = operations.members[list].front();
    operations.list.push_back(operation);
  }
  return operations;
}

TEST(StandIns, are_one_for_all_members_of_the_same_broadcasts) {
  const Operations operations = broadcasts({{{4}, {1}, {2}, {3}}, {{0}, {3}, {4}}});
  const StandIns ranks(operations, lane_by_lane(operations));
  EXPECT_THAT(ranks_of(ranks, 0), ElementsAre(Rank{1}, Rank{3}));  // 1 for 2, 3 for 4
  EXPECT_THAT(ranks_of(ranks, 1), ElementsAre(Rank{0}, Rank{3}));
  EXPECT_EQ(ranks.others(), 2U);
}

TEST(StandIns, are_none_for_ranks_that_also_send_on_the_lane) {
  Operations operations = broadcasts({{{0}, {1}, {2}, {3}}});
  Operation send;
  send.source = Rank{1};
  send.target = Rank{7};
  operations.list.push_back(send);
  const StandIns sending(operations, lane_by_lane(operations));
  EXPECT_THAT(ranks_of(sending, 0), ElementsAre(Rank{0}, Rank{1}));
  EXPECT_THAT(ranks_of(sending, 1), ElementsAre(Rank{1}, Rank{7}));
  operations.list.back().lane = LaneId{1};
  const StandIns elsewhere(operations, lane_by_lane(operations));
  EXPECT_THAT(ranks_of(elsewhere, 0), ElementsAre(Rank{0}));
}

}  // namespace
}  // namespace isthmus
