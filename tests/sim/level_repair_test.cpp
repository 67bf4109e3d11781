// The repair of levels (sim/level_repair.cpp): rates after any change, in the relaxed order and in the strict
// one that a repair falls back to, against a water-fill and the certificate.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/level_case.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::sim {
namespace {

using cases::LevelCase;

constexpr Uint128 long_mark = Uint128(1) << 85U;

/// One random change to a case and to its levels.
void change(LevelCase& input, Levels& levels) {
  const std::uint32_t c = input.below(static_cast<std::uint32_t>(input.rates.classes.size()));
  Allocation::Group& group = input.rates.classes[c];
  if (input.below(6) == 0) {
    const std::uint32_t r = input.below(static_cast<std::uint32_t>(input.rates.capacities.size()));
    Uint128& capacity = input.rates.capacities[r];
    capacity = input.below(4) == 0 ? 0 : (Uint128(1) << 56U) + (Uint128(input.below(1U << 30U)) << 22U);
    levels.set_capacity(r, capacity);
  } else if (group.flows == 0) {
    group.flows = 1;
    levels.enter(c, long_mark);
  } else if (input.below(2) == 0) {
    group.flows = 0;
    levels.leave(c);
  } else {
    group.flows = input.below(9) + 1;
    levels.recount(c, static_cast<std::uint32_t>(group.flows));
  }
}

/// Empty when the rates are those of the water-fill, and certified.
std::string judge(LevelCase& input, const Levels& levels) {
  const std::vector<std::uint64_t> expected = input.water_fill();
  for (std::uint32_t c = 0; c < expected.size(); ++c) {
    const std::uint64_t found = input.rates.classes[c].rate = levels.rate(c);
    if (found != expected[c]) {
      return "class " + std::to_string(c) + " has rate " + std::to_string(found) + ", expected " +
             std::to_string(expected[c]);
    }
  }
  return certify(input.rates);
}

class LevelRepairShards : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Levels, LevelRepairShards, testing::Range(std::uint64_t{0}, isthmus::test::shards));

TEST_P(LevelRepairShards, give_the_rates_of_a_water_fill_after_any_change_in_either_order) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 3'200);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    for (const std::uint32_t patience : {0U, 1U, 16U}) {
      LevelCase input(seed);
      Levels levels = input.levels(patience);
      for (int step = 0; step < 20; ++step) {
        for (std::uint32_t changes = input.below(5); changes > 0; --changes) change(input, levels);
        levels.repair();
        ASSERT_EQ(judge(input, levels), "")
            << "seed " << seed << ", patience " << patience << ", step " << step;
      }
      if (patience == 16) {
        ASSERT_EQ(levels.strict_repairs(), 0U) << "seed " << seed;
      }
    }
  }
}

/// A ring of resources whose capacities rise by less than the order tells apart, two classes of one resource
/// and its neighbour each: levels that are looked at again and again.
LevelCase ring_of_near_ties(std::uint32_t resources) {
  LevelCase ring(0);
  ring.rates = {};
  const std::uint64_t one = std::uint64_t{1} << 20U;
  for (std::uint32_t r = 0; r < resources; ++r) {
    ring.rates.capacities.push_back((Uint128(1) << 58U) + (Uint128(r) << 38U));
    for (const std::uint32_t step : {1U, 7U}) {
      Allocation::Group group;
      group.shares = {{r, one}, {(r + step) % resources, one}};
      group.flows = 1;
      ring.rates.classes.push_back(group);
    }
  }
  return ring;
}

void enter_all(Levels& levels, std::uint32_t classes) {
  for (std::uint32_t c = 0; c < classes; ++c) levels.enter(c, long_mark);
}

/// The relaxed order alone does not end here: not within two hundred million looks at 200 resources.
TEST(LevelRepair, becomes_strict_within_a_repair_that_runs_out_of_patience_and_ends_right) {
  LevelCase ring = ring_of_near_ties(200);
  const std::uint64_t looks_of_one = ring.rates.capacities.size() + 4;
  Levels relaxed_first = ring.levels(), strict = ring.levels(0);
  for (Levels* const levels : {&relaxed_first, &strict}) {
    enter_all(*levels, static_cast<std::uint32_t>(ring.rates.classes.size()));
    levels->repair();
    EXPECT_EQ(judge(ring, *levels), "");
    EXPECT_EQ(levels->strict_repairs(), 1U);
  }
  EXPECT_GT(relaxed_first.commits(), 16 * looks_of_one);
  EXPECT_LT(relaxed_first.commits(), strict.commits() + 17 * looks_of_one);
}

/// It takes a thousand looks for each of 2,000 resources: half of their square.
TEST(LevelRepair, ends_in_a_large_ring_of_near_ties) {
  const std::uint32_t resources = 2000;
  LevelCase ring = ring_of_near_ties(resources);
  Levels levels = ring.levels();
  enter_all(levels, static_cast<std::uint32_t>(ring.rates.classes.size()));
  levels.repair();
  EXPECT_LT(levels.commits(), std::uint64_t{resources} * resources);
  for (std::uint32_t c = 0; c < ring.rates.classes.size(); ++c) ring.rates.classes[c].rate = levels.rate(c);
  EXPECT_EQ(certify(ring.rates), "");
}

TEST(LevelRepair, is_relaxed_again_in_the_repair_after_a_strict_one) {
  LevelCase ring = ring_of_near_ties(200);
  const auto classes = static_cast<std::uint32_t>(ring.rates.classes.size());
  Levels levels = ring.levels();
  enter_all(levels, classes);
  levels.repair();
  ASSERT_EQ(levels.strict_repairs(), 1U);
  for (std::uint32_t c = 1; c < classes; ++c) {
    ring.rates.classes[c].flows = 0;
    levels.leave(c);
  }
  levels.repair();
  EXPECT_EQ(levels.strict_repairs(), 1U);
  EXPECT_EQ(judge(ring, levels), "");
}

TEST(LevelRepair, looks_at_nothing_when_nothing_changed) {
  LevelCase ring = ring_of_near_ties(8);
  Levels levels = ring.levels(0);
  levels.enter(0, long_mark);
  levels.repair();
  const std::uint64_t commits = levels.commits(), repairs = levels.strict_repairs();
  levels.repair();
  EXPECT_EQ(levels.commits(), commits);
  EXPECT_EQ(levels.strict_repairs(), repairs);
}

}  // namespace
}  // namespace isthmus::sim
