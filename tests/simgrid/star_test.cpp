// SimGrid as an oracle of the fluid solver. Without it these tests are skipped.

#include "bench/star.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "bench/simgrid_star.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::bench {
namespace {

using test::seeds_of_shard;

std::uint32_t below(std::mt19937_64& random, std::uint32_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

/// Ports of unequal speeds; sizes that are often equal, flows that start together or one after the other.
StarLoad random_load(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  StarLoad load;
  load.sources = 1 + below(random, 10);
  load.targets = 1 + below(random, 10);
  const bool even = below(random, 2) == 0;
  for (std::uint32_t p = 0; p < load.sources + load.targets; ++p) {
    load.ports.push_back(25'000'000'000LL << (even ? 1U : below(random, 3)));
  }
  load.latency = Duration{2'000'000LL * below(random, 3)};
  const std::uint32_t sizes = 1 + below(random, 60), gap = 40 * below(random, 3),
                      flows = 1 + below(random, 60);
  std::vector<std::int64_t> known;
  for (std::uint32_t s = 0; s < sizes; ++s) known.push_back((1LL << 20U) + below(random, 16U << 20U));
  Instant start;
  for (std::uint32_t f = 0; f < flows; ++f) {
    if (gap > 0) start = start + Duration{1'000'000LL * below(random, gap)};
    load.flows.push_back(
        {below(random, load.sources), below(random, load.targets), known[below(random, sizes)], start});
  }
  return load;
}

/// The same flows, a few in flight per source.
StarLoad random_window(std::uint64_t seed) {
  StarLoad load = random_load(seed);
  for (StarFlow& flow : load.flows) flow.start = {};
  load.window = 1 + seed % 4;
  return load;
}

/// The largest relative distance between ends here and there, of flows that end before `horizon` here.
double farthest(const StarLoad& load, const SimgridRun& run, double horizon) {
  const std::vector<Instant> ends = run_star(load);
  double most = 0;
  for (std::size_t f = 0; f < ends.size(); ++f) {
    const double end = seconds(ends[f]);
    if (end <= horizon) most = std::max(most, std::abs(run.ends[f] - end) / end);
  }
  return most;
}

/// Why there is nothing to compare with; empty where there is.
std::string no_simgrid() {
  if (!has_simgrid()) return "built without SimGrid (libsimgrid-dev)";
  return test::sanitized() ? "SimGrid switches stacks behind the sanitizers' back" : "";
}

class SimgridShards : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_simgrid(); !reason.empty()) GTEST_SKIP() << reason;
  }
};
INSTANTIATE_TEST_SUITE_P(Simgrid, SimgridShards, testing::Range(std::uint64_t{0}, test::shards));

TEST_P(SimgridShards, ends_every_flow_of_open_loads_when_the_fluid_solver_does) {
  const auto [begin, end] = seeds_of_shard(GetParam(), 320);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const StarLoad load = random_load(seed);
    const auto run = run_on_simgrid(load, SimgridUpdate::full);
    ASSERT_TRUE(run) << "seed " << seed;
    EXPECT_LE(farthest(load, *run, INFINITY), 1e-5) << "seed " << seed;
  }
}

TEST_P(SimgridShards, ends_flows_of_closed_loops_when_the_fluid_solver_does_at_first) {
  const auto [begin, end] = seeds_of_shard(GetParam(), 160);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const StarLoad load = random_window(seed);
    const auto run = run_on_simgrid(load, SimgridUpdate::full);
    ASSERT_TRUE(run) << "seed " << seed;
    EXPECT_LE(farthest(load, *run, INFINITY), 1e-5) << "seed " << seed;
  }
}

TEST(Simgrid, ends_flows_of_a_larger_load_when_the_fluid_solver_does) {
  if (const std::string reason = no_simgrid(); !reason.empty()) GTEST_SKIP() << reason;
  const StarLoad load = random_star(256, 1000, 0);
  const auto run = run_on_simgrid(load, SimgridUpdate::full);
  ASSERT_TRUE(run);
  EXPECT_LE(farthest(load, *run, INFINITY), 1e-5);
}

TEST(Simgrid, would_tell_a_flow_that_is_a_thousandth_larger) {
  if (const std::string reason = no_simgrid(); !reason.empty()) GTEST_SKIP() << reason;
  StarLoad load = random_star(8, 30, 0);
  const auto run = run_on_simgrid(load, SimgridUpdate::full);
  ASSERT_TRUE(run);
  EXPECT_LE(farthest(load, *run, INFINITY), 1e-5);
  load.flows[10].bytes += load.flows[10].bytes / 1000;
  EXPECT_GT(farthest(load, *run, INFINITY), 1e-5);
}

/// What the mode is for that the other tests ask SimGrid for.
TEST(Simgrid, by_its_default_update_ends_single_flows_at_other_times) {
  if (const std::string reason = no_simgrid(); !reason.empty()) GTEST_SKIP() << reason;
  const StarLoad load = random_star(256, 1000, 0);
  const auto run = run_on_simgrid(load, SimgridUpdate::selective);
  ASSERT_TRUE(run);
  EXPECT_GT(farthest(load, *run, INFINITY), 1e-5);
}

}  // namespace
}  // namespace isthmus::bench
