#include "planner/policies/cell_parts.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

RC_GTEST_PROP(CellParts, make_up_the_cell_once, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 40), columns = *rc::gen::inRange<std::int64_t>(1, 40);
  const Region cell = whole({rows, columns});
  std::vector<int> seen(to_size(rows * columns));
  for (const Region& part : split(cell, *rc::gen::inRange<std::int64_t>(1, 20))) {
    RC_ASSERT(!part.empty());
    for (std::int64_t r = part.begin[0]; r < part.end[0]; ++r)
      for (std::int64_t c = part.begin[1]; c < part.end[1]; ++c) ++seen[to_size(r * columns + c)];
  }
  for (const int times : seen) RC_ASSERT(times == 1);
}

TEST(CellParts, are_shared_only_from_one_megabyte_on) {
  EXPECT_EQ(shares_of(Bytes{999'999}, 8), 1);
  EXPECT_EQ(shares_of(Bytes{3'000'000}, 8), 3);
  EXPECT_EQ(shares_of(Bytes{90'000'000}, 8), 8);
  EXPECT_EQ(parts_of(Bytes{8'000'000}, 4, Bytes{2'000'000}), 8);
}

}  // namespace
}  // namespace isthmus
