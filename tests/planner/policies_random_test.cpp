// Every policy on random refits, by seed: what it plans is proven by the checker, is right under several
// schedules of the twin, and leaves the same bytes as the plan of `golden`, where there is one and it serves
// the refit. The twin's expectation is the layouts' own: element e of the source at every place where the
// target layout has e.

#include <cstdio>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"
#include "tests/support/twin.hpp"

namespace isthmus::policies_random_test {
namespace {

constexpr std::uint64_t refits = 1000;  // of all shards

/// Ranks on hosts of eight GPUs: in order, with four on each host, or two to a GPU.
Refit placed(const test::RefitCase& refit_case, std::uint64_t seed) {
  Refit refit = test::make_refit(refit_case);
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank) {
    const std::uint32_t spread = (rank * 4) % 128 + rank * 4 / 128;
    refit.gpu_of_rank[rank] = {seed % 3 == 0 ? rank : seed % 3 == 1 ? spread : rank / 2};
  }
  return refit;
}

struct Outcome {
  int planned = 0, refused = 0, compared = 0;
};

class PolicyRuns {
 public:
  void run(std::uint64_t seed) {
    const Refit refit = placed(test::sample_case(seed), seed);
    const test::Twin twin(refit);
    const Policy* golden = find_policy("golden");
    const test::EndState expected = golden == nullptr ? test::EndState{} : end_of(refit, twin, *golden);
    for (const Policy& policy : policies()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", policy " + std::string(policy.name));
      Outcome& outcome = outcomes_[std::string(policy.name)];
      const PlanResult result = policy.make(refit);
      if (const auto* refused = std::get_if<Refused>(&result)) {
        ++outcome.refused;
        EXPECT_FALSE(refused->reason.empty());
        continue;
      }
      ++outcome.planned;
      expect_right(refit, twin, std::get<Plan>(result), expected, outcome);
    }
  }

  const std::map<std::string, Outcome>& outcomes() const { return outcomes_; }

 private:
  static test::EndState end_of(const Refit& refit, const test::Twin& twin, const Policy& policy) {
    const PlanResult result = policy.make(refit);
    if (std::holds_alternative<Refused>(result)) return {};
    test::EndState end;
    (void)twin.run(std::get<Plan>(result), {}, &end);
    return end;
  }

  static void expect_right(const Refit& refit, const test::Twin& twin, const Plan& plan,
                           const test::EndState& expected, Outcome& outcome) {
    const Proof proof = check(refit, plan);
    EXPECT_TRUE(proof.proven()) << proof.violations.front().message;
    for (std::uint64_t schedule = 0; schedule < 3; ++schedule) {
      test::EndState end;
      const test::TwinResult result = twin.run(plan, {schedule, test::TwinSchedule::nobody}, &end);
      EXPECT_TRUE(result.correct()) << result.impossible << result.first_fault;
      if (expected.empty()) continue;
      ++outcome.compared;
      EXPECT_EQ(end, expected);
    }
  }

  std::map<std::string, Outcome> outcomes_;
};

class PolicyShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PolicyShards, plan_random_refits_right_or_refuse_them) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), refits);
  PolicyRuns runs;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) runs.run(seed);
  EXPECT_EQ(runs.outcomes().size(), policies().size());
  for (const auto& entry : runs.outcomes()) {
    const Outcome& outcome = entry.second;
    std::printf("%-20s planned %d, refused %d, compared with golden %d times\n", entry.first.c_str(),
                outcome.planned, outcome.refused, outcome.compared);
    EXPECT_EQ(static_cast<std::uint64_t>(outcome.planned + outcome.refused), seeds.end - seeds.begin);
  }
}
INSTANTIATE_TEST_SUITE_P(Policies, PolicyShards, ::testing::Range<std::uint64_t>(0, test::shards));

}  // namespace
}  // namespace isthmus::policies_random_test
