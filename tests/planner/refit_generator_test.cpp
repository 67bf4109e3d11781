#include "tests/support/refit_generator.hpp"

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(RefitGenerator, makes_the_cases_that_it_promises) {
  constexpr std::uint64_t count = 1000;
  int two_axes = 0, uneven = 0, empty = 0, overlapping = 0, shuffled = 0, shared = 0, strided = 0;
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
    strided += traits.strided_view;
    ranks.push_back(refit_case.ranks);
  }
  std::nth_element(ranks.begin(), ranks.begin() + count / 2, ranks.end());
  const auto per_cent = [](int share) { return static_cast<int>(count) * share / 100; };
  EXPECT_GE(two_axes, per_cent(30));
  EXPECT_GE(uneven, per_cent(30));
  EXPECT_GE(empty, per_cent(20));
  EXPECT_GE(overlapping, per_cent(20));
  EXPECT_GE(shuffled, per_cent(20));
  EXPECT_GE(shared, per_cent(20));
  EXPECT_GE(strided, per_cent(20));
  EXPECT_GE(ranks[count / 2], 8U);
  std::printf(
      "of %d: two sharded axes %d, uneven %d, empty shard %d, overlapping %d, shuffled %d, shared "
      "geometry %d, strided views %d; median ranks %zu\n",
      static_cast<int>(count), two_axes, uneven, empty, overlapping, shuffled, shared, strided,
      ranks[count / 2]);
}

}  // namespace
}  // namespace isthmus
