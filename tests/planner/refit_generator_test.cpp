#include "tests/support/refit_generator.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(RefitGenerator, makes_the_cases_that_it_promises) {
  const std::uint64_t count = 400;
  int two_axes = 0, uneven = 0, empty = 0, overlapping = 0, shuffled = 0, shared = 0;
  std::vector<std::size_t> ranks;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const test::RefitCase refit_case = test::sample_case(seed);
    const test::CaseTraits traits = test::traits_of(refit_case);
    two_axes += traits.two_sharded_axes;
    uneven += traits.uneven;
    empty += traits.empty_shard;
    overlapping += traits.overlapping;
    shuffled += traits.shuffled;
    shared += traits.shared_geometry;
    ranks.push_back(refit_case.ranks);
  }
  std::nth_element(ranks.begin(), ranks.begin() + count / 2, ranks.end());
  EXPECT_GE(two_axes, 120);
  EXPECT_GE(uneven, 120);
  EXPECT_GE(empty, 40);
  EXPECT_GE(overlapping, 80);
  EXPECT_GE(shuffled, 80);
  EXPECT_GE(shared, 80);
  EXPECT_GE(ranks[count / 2], 8U);
}

}  // namespace
}  // namespace isthmus
