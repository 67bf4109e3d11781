// Batches hold every operation once, after what it depends on and after the groups before its own; operations
// that wait for each other are refused.

#include "hw/batches.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"
#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

TEST(Batches, hold_every_operation_once_and_after_its_dependencies) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    const PlanResult result = plan_balanced(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    if (plan == nullptr) continue;
    const Operations operations = expand(refit, *plan);
    std::vector<std::size_t> batch_of(operations.list.size(), 0);
    std::size_t number = 0;
    for (const Batch& batch : make_batches(operations)) {
      ++number;
      for (const std::uint32_t operation : batch.operations) {
        EXPECT_EQ(operations.list[operation].lane, batch.lane);
        EXPECT_EQ(batch_of[operation], 0U);
        batch_of[operation] = number;
        for (const std::uint32_t earlier : operations.dependencies(operations.list[operation])) {
          EXPECT_NE(batch_of[earlier], 0U);
          EXPECT_LT(batch_of[earlier], number);
        }
      }
    }
    EXPECT_EQ(std::count(batch_of.begin(), batch_of.end(), 0U), 0);
  }
}

Operation send_operation(std::uint32_t group, std::uint32_t from, std::uint32_t to) {
  Operation operation;
  operation.group = group;
  operation.source = {from};
  operation.target = {to};
  return operation;
}

TEST(Batches, keep_groups_of_a_rank_apart_and_open_no_more_than_the_window) {
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.list = {send_operation(0, 0, 1), send_operation(1, 0, 1), send_operation(1, 2, 3)};
  const std::vector<Batch> one = make_batches(operations);
  ASSERT_EQ(one.size(), 2U);
  EXPECT_THAT(one[0].operations, ::testing::ElementsAre(0, 2));
  EXPECT_THAT(one[1].operations, ::testing::ElementsAre(1));
  operations.lanes[0].window = 2;
  EXPECT_EQ(make_batches(operations).size(), 1U);
}

TEST(Batches, refuse_operations_that_wait_for_each_other) {
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.list = {send_operation(0, 0, 1), send_operation(1, 0, 1)};
  operations.list[0].after_end = 1;
  operations.after = {1};  // the earlier group after the later one
  EXPECT_THROW((void)make_batches(operations), SystemError);
}

}  // namespace
}  // namespace isthmus::hw
