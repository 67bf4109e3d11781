#include "sim/certificate.hpp"

#include <gtest/gtest.h>

#include "tests/sim/fluid_case.hpp"

namespace isthmus::sim {
namespace {

/// Rates in the middle of a random case; certified.
Allocation solved_rates(std::uint64_t seed) {
  cases::FluidCase input = cases::random_fluid_case(seed);
  Fluid fluid;
  for (const std::int64_t capacity : input.capacities) fluid.add_resource(capacity);
  for (const auto& [usages, sharing] : input.classes) fluid.add_class(usages, sharing);
  for (std::uint32_t f = 0; f < input.flows.size(); ++f) {
    fluid.start(input.flows[f].flow_class, input.flows[f].amount, f);
  }
  fluid.solve();
  return fluid.allocation();
}

/// Plants a fault into each class with flows, one after the other; the twin without it is accepted.
template <class Plant>
void expect_caught(Plant plant) {
  int planted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Allocation right = solved_rates(seed);
    ASSERT_EQ(certify(right), "") << "seed " << seed;
    for (std::size_t c = 0; c < right.classes.size(); ++c) {
      if (right.classes[c].flows == 0 || right.classes[c].rate == 0) continue;
      Allocation wrong = right;
      plant(wrong.classes[c]);
      EXPECT_NE(certify(wrong), "") << "seed " << seed << ", class " << c;
      ++planted;
    }
  }
  EXPECT_GT(planted, 500);
}

TEST(Certificate, catches_a_class_that_is_too_slow) {
  expect_caught([](Allocation::Group& group) { group.rate -= group.rate / 1'000'000 + 1; });
}

TEST(Certificate, catches_a_class_that_is_too_fast) {
  expect_caught([](Allocation::Group& group) { group.rate += group.rate / 1'000'000 + 64; });
}

TEST(Certificate, catches_a_flow_that_was_not_counted) {
  expect_caught([](Allocation::Group& group) {
    ++group.flows;
    group.cap = Allocation::no_cap;  // a capped class may have room for another flow
    group.rate += 64;
  });
}

TEST(Certificate, catches_rates_that_fill_a_link_but_are_not_fair) {
  Allocation rates{{100}, {{{{0, 1}}, 1, 50}, {{{0, 1}}, 1, 50}}};
  EXPECT_EQ(certify(rates), "");
  rates.classes[0].rate = 60;
  rates.classes[1].rate = 40;
  EXPECT_EQ(certify(rates), "class 1 has no full resource on which it is fastest");
}

}  // namespace
}  // namespace isthmus::sim
