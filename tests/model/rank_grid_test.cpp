#include "model/rank_grid.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

using ::testing::ElementsAre;

RC_GTEST_PROP(RankGrid, gives_each_rank_of_the_stage_one_coordinate_in_any_order, ()) {
  const auto size = [] { return *rc::gen::inRange<std::int64_t>(1, 5); };
  const RankGrid grid{size(), size(), size(), size()};
  std::vector<std::string> axes{"tp", "cp", "ep", "dp"};
  for (std::size_t i = 0; i < axes.size(); ++i) std::swap(axes[i], axes[*rc::gen::inRange(i, axes.size())]);
  const std::string order = fmt::format("{}-pp", fmt::join(axes, "-"));
  RC_ASSERT(is_rank_order(order));
  std::vector<std::int64_t> divisors;
  for (std::int64_t n = 1; n <= grid.cp * grid.dp; ++n) {
    if (grid.cp * grid.dp % n == 0) divisors.push_back(n);
  }
  std::vector<Rank> ranks = grid_ranks(order, grid, *rc::gen::elementOf(divisors));
  RC_ASSERT(ranks.size() == to_size(grid.ranks()));
  std::sort(ranks.begin(), ranks.end());
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) RC_ASSERT(ranks[rank].value == rank);
}

TEST(RankGrid, counts_the_leftmost_axis_fastest) {
  const auto values = [](std::string_view order, const RankGrid& grid, std::int64_t shards) {
    std::vector<std::uint32_t> result;
    for (const Rank rank : grid_ranks(order, grid, shards)) result.push_back(rank.value);
    return result;
  };
  EXPECT_THAT(values("tp-cp-ep-dp-pp", {2, 1, 1, 2}, 1), ElementsAre(0, 1, 2, 3));  // [replicas, tp]
  EXPECT_THAT(values("dp-tp-pp", {2, 1, 1, 2}, 1), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(values("tp-dp-pp", {2, 1, 1, 2}, 2), ElementsAre(0, 2, 1, 3));  // [tp, shards]
}

TEST(RankGrid, orders_have_each_axis_at_most_once_and_pp_last) {
  for (const char* order : {"pp", "tp-pp", "tp-cp-ep-dp-pp", "dp-ep-tp-cp-pp"})
    EXPECT_TRUE(is_rank_order(order));
  for (const char* order : {"", "-", "tp", "pp-tp", "tp-tp-pp", "tp--pp", "tp-xp-pp", "tp-pp-", "TP-pp"}) {
    EXPECT_FALSE(is_rank_order(order)) << order;
  }
}

}  // namespace
}  // namespace isthmus
