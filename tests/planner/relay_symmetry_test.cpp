// The merged program against the one that is not merged: equal optima on random small refits, in exact
// arithmetic of their certificates; and few variables where GPUs can be exchanged.

#include "planner/relay_symmetry.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "planner/bound.hpp"
#include "planner/certified_bound.hpp"
#include "planner/relay_program.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus {
namespace {

/// Every GPU of `hosts` hosts on one side sends what it alone holds to all of as many hosts on the other.
std::vector<test::SparseTensor> all_to_all(std::uint32_t hosts) {
  std::vector<test::SparseTensor> tensors;
  std::vector<std::uint32_t> receivers(8 * hosts);
  std::iota(receivers.begin(), receivers.end(), 8 * hosts);
  for (std::uint32_t gpu = 0; gpu < 8 * hosts; ++gpu) tensors.push_back({1'000'000'000, {gpu}, receivers});
  return tensors;
}

double proven_seconds(const Refit& refit, bool detours, Merging merging) {
  const LowerBound cuts = lower_bound(refit);
  const auto certificate = relay_certificate(refit, detours, detours ? cuts.any_route : cuts.time, merging);
  if (!certificate) return -1;
  const CertificateVerdict verdict = verify_certificate(refit, *certificate);
  EXPECT_TRUE(verdict.holds()) << verdict.refusal;
  return seconds(verdict.time);
}

TEST(RelaySymmetry, gives_what_the_whole_program_gives_on_random_small_refits) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Refit refit = test::sparse_refit(test::sparse_tensors(seed));
    for (const bool detours : {false, true}) {
      const double whole = proven_seconds(refit, detours, Merging::never);
      const double merged = proven_seconds(refit, detours, Merging::always);
      EXPECT_EQ(whole < 0, merged < 0) << seed;
      if (whole <= 0) continue;
      ++compared;
      EXPECT_NEAR(merged / whole, 1, 1e-4) << seed << " " << detours;
    }
  }
  EXPECT_GT(compared, 250);
}

TEST(RelaySymmetry, makes_one_variable_of_many_where_gpus_can_be_exchanged) {
  for (const std::uint32_t hosts : {1U, 2U, 4U}) {
    const Refit refit = test::sparse_refit(all_to_all(hosts), Relay::members, 16 * std::size_t{hosts});
    const ByteClasses classes = byte_classes(refit);
    const std::vector<ByteClass> list = without_stages(classes);
    const RelayGraph graph = relay_graph(refit.fabric, taking_part(refit));
    std::vector<RelayDemand> demands;
    for (std::size_t a = 0; a < list.size(); ++a) {
      for (const std::uint32_t gpu : classes.sets[list[a].receivers]) demands.push_back({a, gpu, nullptr});
    }
    const RelaySymmetry symmetry = RelayColours(refit.fabric, classes.sets, list, graph).symmetry(demands);
    EXPECT_EQ(symmetry.variable.size(), list.size() * graph.edges.size());
    EXPECT_LE(symmetry.variables, 60U);
    EXPECT_LE(symmetry.demands.first.size(), 2U);  // on the holder's rail, or not
  }
}

TEST(RelaySymmetry, solves_refits_that_are_too_large_for_the_whole_program) {
  const Refit refit = test::sparse_refit(all_to_all(6), Relay::members, 96);
  EXPECT_LT(proven_seconds(refit, false, Merging::never), 0);
  const double merged = proven_seconds(refit, false, Merging::always);
  EXPECT_GE(merged, 0.999 * seconds(lower_bound(refit).time));
  EXPECT_TRUE(certified_bound(refit).program_solved);
}

TEST(RelaySymmetry, without_it_each_thing_stands_for_itself) {
  const RelaySymmetry symmetry = without_symmetry(3, 5, 4);
  EXPECT_EQ(symmetry.variables, 15U);
  EXPECT_EQ(symmetry.demands.first.size(), 4U);
  EXPECT_TRUE(std::all_of(symmetry.edges.count.begin(), symmetry.edges.count.end(),
                          [](std::uint32_t count) { return count == 1; }));
}

}  // namespace
}  // namespace isthmus
