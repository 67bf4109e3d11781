#include "planner/order_unit.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

double miss(std::int64_t part, std::int64_t unit) {
  const std::int64_t below = std::max<std::int64_t>(1, unit / part), above = below + 1;
  const auto off = [&](std::int64_t count) { return std::abs(count * part - unit); };
  return static_cast<double>(std::min(off(below), off(above))) / static_cast<double>(unit);
}

RC_GTEST_PROP(OrderUnit, no_part_is_larger_than_a_unit_and_fewer_parts_would_miss_it_by_more, ()) {
  const auto unit = *rc::gen::inRange<std::int64_t>(1'000'000, 100'000'000);
  const auto size = *rc::gen::inRange<std::int64_t>(1, 400'000'000);
  const UnitCut cut = cut_for_unit({size}, {unit});
  const std::int64_t fewest = (size + unit - 1) / unit;
  RC_ASSERT(cut.parts >= fewest && cut.parts <= 8 * fewest);
  if (8 * size < unit) {
    RC_ASSERT(cut.parts == 1);
    return;
  }
  RC_ASSERT(std::abs(cut.miss - miss(size / cut.parts, unit)) < 1e-9);
  for (std::int64_t parts = fewest; parts < cut.parts; ++parts)
    RC_ASSERT(miss(size / parts, unit) >= std::max(cut.miss, 0.01) - 1e-9);
}

TEST(OrderUnit, a_size_that_divides_the_unit_stays_whole) {
  EXPECT_EQ(cut_for_unit({25}, {100}).parts, 1);
  EXPECT_EQ(cut_for_unit({40}, {100}).parts, 2);  // five twentieths
  EXPECT_EQ(cut_for_unit({300}, {100}).parts, 3);
}

/// Every pair moves `count` transfers of `bytes`.
std::vector<Transfer> pairs_of(std::size_t pairs, std::size_t count, std::int64_t bytes) {
  std::vector<Transfer> transfers;
  for (std::uint32_t pair = 0; pair < pairs; ++pair)
    for (std::size_t i = 0; i < count; ++i) transfers.push_back({pair, 100 + pair, {bytes}});
  return transfers;
}

RC_GTEST_PROP(OrderUnit, pairs_of_equal_transfers_have_whole_units_or_rests_that_share_one, ()) {
  const auto bytes = *rc::gen::inRange<std::int64_t>(1000, 100'000);
  const auto parts = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto units = *rc::gen::inRange<std::int64_t>(1, 12);
  const std::vector<Transfer> transfers = pairs_of(5, to_size(parts * units), bytes);
  // Wanted is near a unit that fits exactly; so the chosen one has to fit exactly as well.
  const Bytes unit = fitting_unit(transfers, {parts * bytes * 9 / 10}, 0);
  RC_ASSERT(unit.value % bytes == 0);
  const std::int64_t rest = parts * units * bytes % unit.value;
  const bool shares = rest == 0 || unit.value % rest == 0;
  RC_ASSERT(shares);
}

TEST(OrderUnit, rows_of_feeds_make_it_smaller) {
  const std::vector<Transfer> transfers = pairs_of(4, 24, 1000);
  const Bytes flat = fitting_unit(transfers, {4000}, 0), deep = fitting_unit(transfers, {4000}, 6);
  EXPECT_EQ(deep.value, 3000);
  EXPECT_GE(flat, deep);
}

TEST(OrderUnit, of_nothing_is_what_was_wanted) { EXPECT_EQ(fitting_unit({}, {4000}, 0).value, 4000); }

}  // namespace
}  // namespace isthmus
