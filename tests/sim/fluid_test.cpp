#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/sim/fluid_case.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::sim {
namespace {

using cases::FluidCase;
using cases::SolvedCase;

/// A case may lose this to ends that are rounded up: what a late flow of weight 2 and priority 4 holds
/// meanwhile keeps one of weight 1/8 waiting for 64 times as long.
long double allowed(const FluidCase& input, long double end) {
  return 1e-9L * end + 128.0L * static_cast<long double>(input.flows.size());
}

class FluidShards : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Fluid, FluidShards, testing::Range(std::uint64_t{0}, isthmus::test::shards));

TEST_P(FluidShards, end_every_flow_when_a_naive_water_fill_does) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 20'800);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const FluidCase input = cases::random_fluid_case(seed);
    const SolvedCase found = cases::solve_case(input);
    ASSERT_EQ(found.wrong, "") << "seed " << seed;
    const std::vector<long double> expected = cases::naive_ends(input);
    for (std::size_t f = 0; f < expected.size(); ++f) {
      ASSERT_LE(std::abs(static_cast<long double>(found.ends[f].value) - expected[f]),
                allowed(input, expected[f]))
          << "seed " << seed << ", flow " << f;
    }
  }
}

TEST_P(FluidShards, give_renumbered_resources_and_classes_the_same_times) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 1600);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const FluidCase input = cases::random_fluid_case(seed);
    FluidCase turned = input;
    std::reverse(turned.capacities.begin(), turned.capacities.end());
    std::reverse(turned.classes.begin(), turned.classes.end());
    const auto resources = static_cast<std::uint32_t>(input.capacities.size());
    for (cases::ClassCase& flow_class : turned.classes) {
      for (Usage& usage : flow_class.usages) usage.resource = resources - 1 - usage.resource;
    }
    for (cases::FlowCase& flow : turned.flows) {
      flow.flow_class = static_cast<std::uint32_t>(turned.classes.size() - 1) - flow.flow_class;
    }
    for (cases::CapacityCase& change : turned.changes) change.resource = resources - 1 - change.resource;
    const SolvedCase once = cases::solve_case(input), again = cases::solve_case(turned);
    for (std::size_t f = 0; f < once.ends.size(); ++f) {
      ASSERT_EQ(again.ends[f], once.ends[f]) << "seed " << seed << ", flow " << f;
    }
  }
}

TEST_P(FluidShards, take_k_times_as_long_for_k_times_the_amounts) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 1600);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    FluidCase input = cases::random_fluid_case(seed);
    input.changes.clear();
    for (cases::FlowCase& flow : input.flows) flow.start = 0;
    FluidCase larger = input;
    for (cases::FlowCase& flow : larger.flows) flow.amount *= 7;
    const SolvedCase once = cases::solve_case(input), scaled = cases::solve_case(larger);
    for (std::size_t f = 0; f < once.ends.size(); ++f) {
      const auto expected = 7 * static_cast<long double>(once.ends[f].value);
      ASSERT_LE(std::abs(static_cast<long double>(scaled.ends[f].value) - expected),
                7 * allowed(input, expected));
    }
  }
}

TEST(Fluid, shares_a_link_equally_and_gives_the_rest_to_who_can_use_it) {
  Fluid fluid;
  const auto wide = fluid.add_resource(100), narrow = fluid.add_resource(20);
  const auto a = fluid.add_class({{wide, Usage::one}});
  const auto b = fluid.add_class({{wide, Usage::one}, {narrow, Usage::one}});
  fluid.start(a, 1000, 0);
  fluid.start(b, 1000, 1);
  fluid.solve();
  EXPECT_EQ(fluid.rate(a), 80);
  EXPECT_EQ(fluid.rate(b), 20);
  EXPECT_EQ(fluid.certificate(), "");
}

TEST(Fluid, gives_a_flow_of_priority_three_three_times_the_rate) {
  Fluid fluid;
  const auto link = fluid.add_resource(100);
  const auto a = fluid.add_class({{link}}), b = fluid.add_class({{link}}, {3, {}});
  fluid.start(a, 1000, 0);
  fluid.start(b, 1000, 1);
  fluid.solve();
  EXPECT_EQ(fluid.rate(a), 25);
  EXPECT_EQ(fluid.rate(b), 75);
}

TEST(Fluid, leaves_what_a_capped_flow_may_not_use_to_others) {
  Fluid fluid;
  const auto link = fluid.add_resource(100);
  const auto a = fluid.add_class({{link}}), b = fluid.add_class({{link}}, {1, 10});
  fluid.start(a, 1000, 0);
  fluid.start(b, 1000, 1);
  fluid.solve();
  EXPECT_EQ(fluid.rate(a), 90);
  EXPECT_EQ(fluid.rate(b), 10);
  fluid.set_capacity(link, 14);
  fluid.solve();
  EXPECT_EQ(fluid.rate(a), 7);
  EXPECT_EQ(fluid.rate(b), 7);
}

TEST(Fluid, ends_a_flow_without_bytes_where_it_starts) {
  Fluid fluid;
  const auto c = fluid.add_class({{fluid.add_resource(0)}});
  fluid.start(c, 0, 7);
  fluid.solve();
  Instant when{-1};
  ASSERT_TRUE(fluid.next_end(when));
  EXPECT_EQ(when.value, 0);
  std::vector<std::uint32_t> ended;
  fluid.advance(when, ended);
  EXPECT_EQ(ended, std::vector<std::uint32_t>{7});
  EXPECT_EQ(fluid.active(), 0U);
}

TEST(Fluid, stands_still_on_a_dead_link_and_goes_on_when_it_is_back) {
  Fluid fluid;
  const auto link = fluid.add_resource(0);
  const auto c = fluid.add_class({{link}});
  fluid.start(c, 3, 0);
  fluid.solve();
  Instant when;
  EXPECT_FALSE(fluid.next_end(when));
  EXPECT_EQ(fluid.active(), 1U);
  fluid.set_capacity(link, 1);
  fluid.solve();
  ASSERT_TRUE(fluid.next_end(when));
  EXPECT_EQ(when.value, 3 * picoseconds_per_second);
}

TEST(Fluid, rounds_an_end_up_so_that_no_message_beats_its_wire) {
  Fluid fluid;
  const auto c = fluid.add_class({{fluid.add_resource(3), Usage::one}});
  fluid.start(c, 1, 0);
  fluid.solve();
  Instant when;
  ASSERT_TRUE(fluid.next_end(when));
  EXPECT_EQ(when.value, 333'333'333'334);
}

TEST(Fluid, cancelled_flows_say_what_they_had_left_and_leave_the_rest_to_others) {
  Fluid fluid;
  const std::uint32_t port = fluid.add_resource(1000);
  const std::uint32_t failing = fluid.add_class({{port}}), other = fluid.add_class({{port}});
  fluid.start(failing, 1000, 1);
  fluid.start(failing, 3000, 2);
  fluid.start(other, 1000, 3);
  fluid.start(other, 2000, 4);
  fluid.solve();
  std::vector<std::uint32_t> ended;
  fluid.advance({2 * picoseconds_per_second}, ended);  // 500 each
  std::vector<Fluid::Cancelled> cancelled;
  fluid.cancel(failing, cancelled);
  fluid.solve();
  EXPECT_TRUE(ended.empty());
  ASSERT_EQ(cancelled.size(), 2U);
  EXPECT_EQ(cancelled[0].tag, 1U);
  EXPECT_EQ(cancelled[0].left, 500);
  EXPECT_EQ(cancelled[1].left, 2500);
  EXPECT_EQ(fluid.rate(other), 500);
  EXPECT_EQ(fluid.active(), 2U);
  EXPECT_EQ(fluid.certificate(), "");
  Instant next;
  ASSERT_TRUE(fluid.next_end(next));
  EXPECT_EQ(next.value, 3 * picoseconds_per_second);
}

TEST(Fluid, endless_flows_get_the_lower_of_cap_and_fair_share_and_never_end) {
  Fluid fluid;
  const std::uint32_t port = fluid.add_resource(1000);
  const std::uint32_t background = fluid.add_class({{port}}, {1, 300}), flows = fluid.add_class({{port}});
  fluid.start_endless(background, 2);
  fluid.solve();
  Instant next;
  EXPECT_FALSE(fluid.next_end(next));
  EXPECT_EQ(fluid.rate(background), 300);
  fluid.start(flows, 1000, 7);
  fluid.solve();
  EXPECT_EQ(fluid.rate(background), 300);
  EXPECT_EQ(fluid.rate(flows), 400);
  fluid.start(flows, 1000, 8);
  fluid.start(flows, 1000, 9);
  fluid.solve();
  EXPECT_EQ(fluid.rate(background), 200);
  EXPECT_EQ(fluid.certificate(), "");
  ASSERT_TRUE(fluid.next_end(next));
  std::vector<std::uint32_t> ended;
  fluid.advance(next, ended);
  EXPECT_EQ(ended.size(), 3U);
  fluid.solve();
  EXPECT_FALSE(fluid.next_end(next));
}

}  // namespace
}  // namespace isthmus::sim
