// Classes, service and marks of the level solver. Rates are those of level_repair_test.cpp; here time moves.

#include "sim/levels.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/level_case.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Due = std::vector<std::uint32_t>;

/// Class 0 on `wide` alone, class 1 on `wide` and `narrow`.
struct TwoLinks {
  static constexpr std::uint32_t wide = 0, narrow = 1;
  Levels levels;

  TwoLinks() {
    levels.add_resource(100);
    levels.add_resource(20);
    const Levels::Load one[] = {{wide, 1}}, both[] = {{wide, 1}, {narrow, 1}};
    levels.add_class(one, Levels::unlimited);
    levels.add_class(both, Levels::unlimited);
    levels.prepare();
  }
  void enter_both(Uint128 first_mark, Uint128 second_mark) {
    levels.enter(0, first_mark);
    levels.enter(1, second_mark);
    levels.repair();
  }
  Due due_at(std::int64_t picoseconds) {
    Due due;
    levels.advance({picoseconds}, due);
    return due;
  }
};

TEST(Levels, give_a_class_its_lowest_level_and_the_rest_to_others) {
  TwoLinks links;
  links.enter_both(8000, 8000);
  EXPECT_EQ(links.levels.rate(0), 80U);
  EXPECT_EQ(links.levels.rate(1), 20U);
  links.levels.leave(0);
  links.levels.repair();
  EXPECT_EQ(links.levels.rate(0), 0U);
  EXPECT_EQ(links.levels.rate(1), 20U);
}

TEST(Levels, reach_marks_in_the_order_of_time_and_round_up) {
  TwoLinks links;
  links.enter_both(8001, 2000);
  EXPECT_EQ(links.levels.next(), 100);
  EXPECT_THAT(links.due_at(100), ElementsAre(1));
  links.levels.leave(1);
  links.levels.repair();  // 1 is missing to class 0, which runs at 100
  EXPECT_EQ(links.levels.next(), 101);
  EXPECT_THAT(links.due_at(101), ElementsAre(0));
}

TEST(Levels, carry_marks_and_service_along_when_another_resource_becomes_the_lowest) {
  TwoLinks links;
  links.enter_both(1'000'000, 1500);
  EXPECT_THAT(links.due_at(50), IsEmpty());
  links.levels.set_capacity(TwoLinks::narrow, 1000);
  links.levels.repair();
  EXPECT_EQ(links.levels.rate(1), 50U);
  EXPECT_EQ(links.levels.service(1), Uint128{1000});
  links.levels.repair();
  EXPECT_EQ(links.levels.next(), 60);
  EXPECT_THAT(links.due_at(60), ElementsAre(1));
  EXPECT_EQ(links.levels.service(0), Uint128{50 * 80 + 10 * 50});
}

TEST(Levels, follow_marks_that_come_earlier_or_later) {
  TwoLinks links;
  links.enter_both(8000, 4000);
  links.levels.remark(1, 200);
  links.levels.repair();
  EXPECT_EQ(links.levels.next(), 10);
  links.levels.remark(1, 400'000);
  links.levels.repair();
  EXPECT_EQ(links.levels.next(), 100);
}

TEST(Levels, share_the_level_between_the_flows_of_a_class) {
  TwoLinks links;
  links.enter_both(8000, 8000);
  links.levels.recount(1, 4);
  links.levels.repair();
  EXPECT_EQ(links.levels.rate(1), 5U);
  EXPECT_EQ(links.levels.rate(0), 80U);
  links.levels.recount(0, 3);
  links.levels.repair();
  EXPECT_EQ(links.levels.rate(0), 26U);
}

TEST(Levels, have_no_next_mark_on_a_dead_resource_until_it_is_back) {
  TwoLinks links;
  links.levels.set_capacity(TwoLinks::narrow, 0);
  links.levels.enter(1, 100);
  links.levels.repair();
  EXPECT_EQ(links.levels.rate(1), 0U);
  EXPECT_EQ(links.levels.next(), Earliest::never);
  links.levels.set_capacity(TwoLinks::narrow, 10);
  links.levels.repair();
  EXPECT_EQ(links.levels.next(), 10);
}

TEST(Levels, keep_a_class_at_its_cap_with_or_without_resources) {
  Levels levels;
  levels.add_resource(100);
  const Levels::Load load[] = {{0, 1}};
  levels.add_class(load, 30);
  levels.add_class({}, 7);
  levels.add_class(load, Levels::unlimited);
  levels.prepare();
  for (std::uint32_t c = 0; c < 3; ++c) levels.enter(c, 1000);
  levels.repair();
  EXPECT_EQ(levels.rate(0), 30U);
  EXPECT_EQ(levels.rate(1), 7U);
  EXPECT_EQ(levels.rate(2), 70U);
  levels.set_capacity(0, 40);
  levels.repair();
  EXPECT_EQ(levels.rate(0), 20U);
  EXPECT_EQ(levels.rate(2), 20U);
}

class LevelTimeShards : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Levels, LevelTimeShards, testing::Range(std::uint64_t{0}, isthmus::test::shards));

/// Service is the sum of rate x time, to the last unit, and exactly those classes are due that it says.
TEST_P(LevelTimeShards, add_up_rates_and_end_exactly_the_classes_whose_marks_are_reached) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 1'600);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    cases::LevelCase input(seed);
    Levels levels = input.levels(seed % 2 == 0 ? 0 : 16);
    const auto classes = static_cast<std::uint32_t>(input.rates.classes.size());
    std::vector<Uint128> service(classes, 0), marks(classes, 0);
    std::vector<char> active(classes, 1);
    for (std::uint32_t c = 0; c < classes; ++c) {
      marks[c] = Uint128(input.below(1000) + 1) << 36U;
      levels.enter(c, marks[c]);
    }
    levels.repair();
    while (levels.next() != Earliest::never) {
      const Instant when{levels.next()};
      const auto time = Uint128((when - levels.now()).value);
      Due expected, found;
      for (std::uint32_t c = 0; c < classes; ++c) {
        service[c] += levels.rate(c) * time;
        if (active[c] != 0 && service[c] >= marks[c]) expected.push_back(c);
      }
      levels.advance(when, found);
      ASSERT_THAT(found, testing::UnorderedElementsAreArray(expected)) << "seed " << seed;
      ASSERT_FALSE(found.empty()) << "seed " << seed;
      for (const std::uint32_t c : found) {
        ASSERT_TRUE(levels.service(c) == service[c]) << "seed " << seed << ", class " << c;
        levels.leave(c);
        active[c] = 0;
      }
      levels.repair();
    }
    ASSERT_EQ(std::count(active.begin(), active.end(), 1), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace isthmus::sim
