#include "model/assignment.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

using CostTable = std::vector<std::vector<std::int64_t>>;

std::int64_t sum_of(const CostTable& cost, const std::vector<std::size_t>& columns) {
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < cost.size(); ++row) sum += cost[row][columns[row]];
  return sum;
}

std::int64_t least_of_all(const CostTable& cost) {
  std::vector<std::size_t> columns(cost.front().size());
  std::iota(columns.begin(), columns.end(), 0U);
  std::int64_t least = sum_of(cost, columns);
  do {
    least = std::min(least, sum_of(cost, columns));
  } while (std::next_permutation(columns.begin(), columns.end()));
  return least;
}

RC_GTEST_PROP(Assignment, costs_what_the_best_of_all_permutations_costs, ()) {
  const auto columns = *rc::gen::inRange<std::size_t>(1, 7);
  const auto rows = *rc::gen::inRange<std::size_t>(1, columns + 1);
  const auto cost = *rc::gen::container<CostTable>(
      rows, rc::gen::container<std::vector<std::int64_t>>(columns, rc::gen::inRange<std::int64_t>(-9, 10)));
  std::vector<std::size_t> found = least_cost_assignment(cost);
  RC_ASSERT(found.size() == rows);
  RC_ASSERT(sum_of(cost, found) == least_of_all(cost));
  std::sort(found.begin(), found.end());
  RC_ASSERT(std::adjacent_find(found.begin(), found.end()) == found.end());
}

TEST(Assignment, of_nothing_is_nothing) { EXPECT_TRUE(least_cost_assignment({}).empty()); }

}  // namespace
}  // namespace isthmus
