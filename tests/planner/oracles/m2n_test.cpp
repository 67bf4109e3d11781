// NCCL M2N's own plans, recorded layout by layout, against ours.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/m2n_limits.hpp"
#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/m2n_oracle.hpp"

namespace isthmus {
namespace {

PlanResult plan_of(const test::M2nOracle& oracle, const Refit& refit) {
  return oracle.choice.balance == M2nBalance::uniform ? plan_m2n_uniform(refit) : plan_m2n_node_aware(refit);
}

std::int64_t real_domain_size(const test::M2nOracle& oracle) {
  // On the split path the record names the smaller of the domain and the target.
  const auto targets = static_cast<std::int64_t>(oracle.tensor.target.mesh.size());
  return oracle.anchor > 0 && oracle.domain_size == targets ? oracle.ranks : oracle.domain_size;
}

Refit refit_of(const test::M2nOracle& oracle) {
  return test::m2n_refit(oracle.tensor, oracle.ranks, real_domain_size(oracle), oracle.choice.spec);
}

template <class Check>
void for_each_oracle(Check check) {
  const std::vector<std::filesystem::path> files = test::m2n_oracle_files();
  if (files.empty()) GTEST_SKIP() << "no recorded plans";
  ASSERT_GE(files.size(), 120U);
  for (const std::filesystem::path& file : files) {
    const test::M2nOracle oracle = test::read_m2n_oracle(file);
    SCOPED_TRACE(oracle.name);
    check(oracle);
  }
}

TEST(M2nOracle, verdicts_are_those_of_policy_and_limits) {
  for_each_oracle([](const test::M2nOracle& oracle) {
    const Refit refit = refit_of(oracle);
    const bool accepted = oracle.verdict == "accepted" || oracle.verdict == "falls_back";
    const PlanResult result = plan_of(oracle, refit);
    EXPECT_EQ(std::holds_alternative<Plan>(result), accepted)
        << (accepted ? std::get<Refused>(result).reason : oracle.verdict);
    EXPECT_EQ(m2n_faults(refit, refit.tensors.front(), oracle.choice.balance).empty(), accepted);
  });
}

TEST(M2nOracle, transfers_and_bytes_are_those_of_the_plan) {
  for_each_oracle([](const test::M2nOracle& oracle) {
    if (oracle.verdict != "accepted") return;
    const Refit refit = refit_of(oracle);
    const Plan plan = std::get<Plan>(plan_of(oracle, refit));
    const test::M2nPicture ours = test::picture_of(refit, plan, oracle);
    const test::M2nPicture& theirs = oracle.picture;
    EXPECT_TRUE(ours.moves == theirs.moves) << ours.moves.size() << " and " << theirs.moves.size();
    EXPECT_TRUE(ours.runs == theirs.runs);
    EXPECT_EQ(ours.received, theirs.received);
    EXPECT_EQ(ours.sent, theirs.sent);
    EXPECT_EQ(ours.idle_sources, theirs.idle_sources);
    EXPECT_EQ(ours.network_bytes, theirs.network_bytes);
    EXPECT_EQ(ours.nvlink_bytes, theirs.nvlink_bytes);
    EXPECT_NEAR(ours.network_copies, theirs.network_copies, 1e-9);
    if (oracle.choice.spec.plan == M2nPlan::ring) {
      EXPECT_TRUE(ours.leaders == theirs.leaders);
    }
    EXPECT_TRUE(check(refit, plan).proven());
  });
}

TEST(M2nOracle, balance_in_force_is_that_of_the_rules) {
  for_each_oracle([](const test::M2nOracle& oracle) {
    if (oracle.verdict != "accepted") return;
    const Refit refit = refit_of(oracle);
    const M2nMapping mapping = m2n_decide(m2n_task(refit, refit.tensors.front()), oracle.choice).mapping;
    EXPECT_EQ(mapping.balance == M2nBalance::uniform ? "uniform" : "node_aware", oracle.balance_effective);
    EXPECT_EQ(mapping.split, oracle.choice.spec.split == M2nSplit::on);
  });
}

TEST(M2nOracle, what_falls_back_is_planned_on_one_communicator) {
  for_each_oracle([](const test::M2nOracle& oracle) {
    if (oracle.verdict != "falls_back") return;
    Refit refit = refit_of(oracle);
    const M2nTask task = m2n_task(refit, refit.tensors.front());
    const M2nMapping mapping = m2n_decide(task, oracle.choice).mapping;
    EXPECT_FALSE(mapping.split);
    EXPECT_NE(mapping.given_up, "");
    const M2nChoice plain{M2nBalance::node_aware, {M2nPlan::ring, M2nSplit::off}};
    EXPECT_EQ(m2n_decide(task, plain).mapping.feeder, mapping.feeder);
  });
}

}  // namespace
}  // namespace isthmus
