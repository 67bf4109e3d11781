// Who sends what to whom under `balanced`: rails, and trees of domains. Random refits of all kinds stand in
// tests/planner/policies_random_test.cpp.

#include "planner/policies/balanced_pattern.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/scenario.hpp"
#include "planner/check.hpp"
#include "planner/policies/entry_domains.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/sparse_refit.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

/// A whole tensor from GPUs of host 0 to GPUs of host 1, on rails with leaves of their own and narrow spines.
Refit between_rails(const std::vector<std::uint32_t>& holders, const std::vector<std::uint32_t>& receivers) {
  Refit refit = test::sparse_refit({{48'000'000, holders, receivers}});
  FabricSpec fabric{"dgx-h100-superpod", 4, std::nullopt, std::nullopt};
  fabric.oversubscription = 16;  // of a full unit; a leaf has four of 32 hosts
  refit.fabric = Fabric(fabric);
  return refit;
}

std::vector<std::uint32_t> some_gpus(std::uint32_t first) {
  const auto chosen = *rc::gen::inRange(1U, 256U);
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t i = 0; i < 8; ++i)
    if ((chosen >> i & 1U) != 0) gpus.push_back(first + i);
  return gpus;
}

RC_GTEST_PROP(BalancedPattern, crosses_rails_only_where_equal_load_leaves_no_choice, ()) {
  const Refit refit = between_rails(some_gpus(0), some_gpus(8));
  const auto rotation = *rc::gen::inRange(0U, 8U);
  const RefitEntry& entry = refit.tensors[0];
  const Pattern pattern =
      balanced_pattern(refit, refit.geometries[0], cells_of(refit.geometries[0]),
                       {entry.source_base, entry.target_base, 1, rotation, Bytes{8'000'000}});
  std::map<std::uint32_t, int> sent, received;  // parts, by rail
  int same = 0, fewest = 1 << 20, most = 0;
  for (const Step& step : pattern.steps) {
    if (step.lane != network_lane) continue;
    const std::uint32_t source = entry.source_base.value + step.source.value;
    const std::uint32_t target =
        (entry.target_base.value + (step.target.value & ~LocalRank::target_side)) % 8;
    ++sent[source];
    ++received[target];
    same += source == target ? 1 : 0;
  }
  int possible = 0;
  for (const auto& [rail, parts] : sent) {
    possible += std::min(parts, received[rail]);
    fewest = std::min(fewest, parts);
    most = std::max(most, parts);
  }
  RC_ASSERT(same == possible);
  RC_ASSERT(most - fewest <= 1);
}

TEST(BalancedPattern, pays_no_heed_to_rails_where_spines_carry_everything) {
  Refit refit = between_rails({0, 1}, {8, 9, 10});
  EXPECT_TRUE(spines_bind(refit.fabric));
  const Plan on_rails = std::get<Plan>(plan_balanced(refit));
  for (const char* const preset : {"dgx-h100", "dgx-h100-superpod"}) {
    refit.fabric = Fabric({preset, 4, std::nullopt, std::nullopt});
    const Plan free = std::get<Plan>(plan_balanced(refit));
    std::uint32_t turn = 0;
    for (const Step& step : free.patterns[0].steps)
      if (step.lane == network_lane) {
        EXPECT_EQ(step.source, LocalRank::source(turn++ % 2)) << preset;
      }
    EXPECT_EQ(on_rails.patterns[0].steps.size(), free.patterns[0].steps.size()) << preset;
  }
}

/// From one GPU to one on each of so many other hosts.
Refit to_domains(std::uint32_t domains, std::int64_t bytes) {
  std::vector<std::uint32_t> receivers;
  for (std::uint32_t d = 1; d <= domains; ++d) receivers.push_back(8 * d);
  return test::sparse_refit({{bytes, {0}, receivers}}, Relay::members, 8 * (domains + 1));
}

/// The most steps that wait for each other, one after the other.
std::size_t depth_of(const Pattern& pattern) {
  std::vector<std::size_t> depth;
  std::size_t deepest = 0;
  for (const Step& step : pattern.steps) {
    std::size_t above = 0;
    for (std::uint32_t a = step.after_begin; a < step.after_end; ++a)
      above = std::max(above, depth[pattern.after[a]]);
    depth.push_back(1 + above);
    deepest = std::max(deepest, depth.back());
  }
  return deepest;
}

RC_GTEST_PROP(BalancedPattern, small_tensors_reach_many_domains_over_trees, ()) {
  const auto domains = *rc::gen::inRange(3U, 24U);
  const Refit refit = to_domains(domains, *rc::gen::inRange(1, 200) * 2);
  const Plan plan = std::get<Plan>(plan_balanced(refit));
  RC_ASSERT(check(refit, plan).proven());
  RC_ASSERT(test::Twin(refit).run(plan, {domains, test::TwinSchedule::nobody}).correct());
  RC_ASSERT(depth_of(plan.patterns[0]) == std::size_t(std::bit_width(domains)));
}

TEST(BalancedPattern, two_trees_share_what_domains_pass_on) {
  const Refit refit = to_domains(15, 64'000'000);
  const Plan plan = std::get<Plan>(plan_balanced(refit));
  EXPECT_EQ(depth_of(plan.patterns[0]), 4U);
  std::map<std::uint32_t, std::int64_t> sent;
  for (const Step& step : plan.patterns[0].steps) sent[step.source.value] += step.region.volume();
  for (const auto& [rank, elements] : sent) EXPECT_LE(elements, 1.05 * 64'000'000) << rank;
}

TEST(BalancedPattern, large_tensors_go_through_chains) {
  const Plan plan = std::get<Plan>(plan_balanced(to_domains(5, 8'000'000'000)));
  EXPECT_EQ(depth_of(plan.patterns[0]), 5U);
}

/// Sixteen stages of four GPUs, each with a domain of its own, to sixteen engines.
Refit of_many_stages(const std::string& fabric) {
  return resolve(
      parse_scenario("model: {config: models/qwen3-4b.json, dtype: bf16, layers: 32}\n"
                     "train: {gpus: 64, tp: 4, pp: 16}\ngenerate: {gpus: 64, tp: 4, dp: 16}\n"
                     "refit: {bulk: all}\nfabric: " +
                         fabric + "\n",
                     project_folder() / "scenarios/of-many-stages.yaml"));
}

/// Most patterns of one geometry.
std::size_t most_patterns(const Refit& refit) {
  const Plan plan = std::get<Plan>(plan_balanced(refit));
  std::map<std::uint32_t, std::set<PatternId>> patterns;
  for (const Instance& instance : plan.instances)
    patterns[refit.tensors[instance.tensor.index()].geometry].insert(instance.pattern);
  std::size_t most = 0;
  for (const auto& [geometry, some] : patterns) most = std::max(most, some.size());
  return most;
}

// Stages with the embedding have other heads than the rest: two times eight rotations at most.
TEST(BalancedPattern, stages_share_their_patterns_wherever_they_stand) {
  for (const int rack : {4, 8, 16, 32}) {
    const Refit refit =
        of_many_stages(fmt::format("{{preset: gb200-nvl72, hosts: 32, gpus_per_rack: {}}}", rack));
    ASSERT_FALSE(spines_bind(refit.fabric));
    EXPECT_LE(most_patterns(refit), 16U) << "racks of " << rack << " GPUs";
  }
}

}  // namespace
}  // namespace isthmus
