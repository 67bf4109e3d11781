// NCCL M2N's arithmetic on layouts small enough to follow by hand. Its recorded plans are in
// tests/planner/oracles.

#include "model/m2n_rules.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus::m2n_rules_test {
namespace {

using ::testing::UnorderedElementsAre;

/// [replica, shard] mesh of a tensor of 8 x 8, shard index fastest.
M2nSide side(std::int64_t replicas, std::int64_t shards, int dimension, std::uint32_t start) {
  const Layout layout{{8, 8},
                      Dtype::bf16,
                      contiguous_mesh({replicas, shards}, Rank{start}),
                      {Placement{}, Placement{dimension}},
                      ChunkRule::even};
  return m2n_side(layout, start);
}

constexpr M2nChoice uniform{M2nBalance::uniform, {M2nPlan::ring, M2nSplit::off}};
constexpr M2nChoice node_aware{M2nBalance::node_aware, {M2nPlan::ring, M2nSplit::off}};
constexpr M2nChoice in_two_phases{M2nBalance::node_aware, {M2nPlan::ring, M2nSplit::on}};
constexpr M2nChoice direct{M2nBalance::uniform, {M2nPlan::direct, M2nSplit::off}};

M2nTask task_of(M2nSide source, M2nSide target) {
  const std::int64_t ranks = std::max(source.start + source.ranks(), target.start + target.ranks());
  return {std::move(source), std::move(target), 4, ranks, false};
}

/// "0>4" (inject), "4=>8" (chain), "4+6" (fanout), of one target shard or of all.
std::vector<std::string> moves(const M2nTask& task, const M2nChoice& choice, std::int64_t shard = -1) {
  std::vector<std::string> list;
  for (const M2nTransfer& transfer : m2n_decide(task, choice).transfers) {
    if (shard >= 0 && transfer.target_shard != shard) continue;
    const std::string_view sign = transfer.phase == M2nPhase::inject  ? ">"
                                  : transfer.phase == M2nPhase::chain ? "=>"
                                                                      : "+";
    list.push_back(fmt::format("{}{}{}", transfer.sender, sign, fmt::join(transfer.receivers, ",")));
  }
  return list;
}

TEST(M2nRules, give_each_source_replica_its_own_targets) {  // case H
  const M2nTask task = task_of(side(2, 2, 0, 0), side(4, 2, 0, 4));
  for (const M2nChoice& choice : {uniform, node_aware}) {
    EXPECT_THAT(moves(task, choice),
                UnorderedElementsAre("0>4", "4+6", "1>5", "5+7", "2>8", "8+10", "3>9", "9+11"));
  }
}

TEST(M2nRules, share_the_source_shards_among_the_first_domain_and_chain_the_next) {  // case I
  const M2nTask task = task_of(side(1, 2, 0, 0), side(4, 2, 1, 4));
  EXPECT_THAT(moves(task, in_two_phases, 0),
              UnorderedElementsAre("0>4", "4+6", "4=>8", "8+10", "1>6", "6+4", "6=>10", "10+8"));
  EXPECT_THAT(moves(task, in_two_phases, 1),
              UnorderedElementsAre("0>5", "5+7", "5=>9", "9+11", "1>7", "7+5", "7=>11", "11+9"));
}

TEST(M2nRules, leave_source_replicas_idle_by_domain_or_by_number) {  // cases J and K
  const M2nTask task = task_of(side(4, 1, 0, 0), side(2, 2, 0, 4));
  EXPECT_THAT(moves(task, node_aware), UnorderedElementsAre("0>4", "4+6", "0>5", "5+7"));
  EXPECT_THAT(moves(task, uniform), UnorderedElementsAre("0>4", "0>5", "2>6", "2>7"));
}

TEST(M2nRules, cut_domains_that_the_fabric_does_not_have_unless_split) {  // case L
  const M2nTask task = task_of(side(1, 2, 0, 0), side(2, 2, 1, 2));
  EXPECT_THAT(moves(task, node_aware),
              UnorderedElementsAre("0>2", "1>2", "2=>4", "2=>4", "0>3", "1>3", "3=>5", "3=>5"));
  EXPECT_THAT(moves(task, in_two_phases),
              UnorderedElementsAre("0>2", "2+4", "1>4", "4+2", "0>3", "3+5", "1>5", "5+3"));
}

TEST(M2nRules, send_to_every_replica_directly) {
  const M2nTask task = task_of(side(2, 2, 0, 0), side(4, 2, 0, 4));
  EXPECT_THAT(moves(task, direct),
              UnorderedElementsAre("0>4", "0>6", "1>5", "1>7", "2>8", "2>10", "3>9", "3>11"));
}

TEST(M2nRules, inject_one_replica_of_several_domains_on_large_communicators) {
  // 32 shards in blocks of 4 ranks: 8 domains a replica, 8 replicas; so 7 steps of a chain follow.
  M2nTask task = task_of(side(1, 1, 0, 0), M2nSide{16, 32, 8, 1, 32, {}});
  for (std::int64_t s = 0; s < 32; ++s) task.target.regions.push_back({{0}, {8}, 1});
  task.source.regions.front() = {{0}, {8}, 1};
  task.communicator_ranks = 272;
  const M2nDecision decision = m2n_decide(task, in_two_phases);
  EXPECT_TRUE(decision.mapping.split);
  for (const M2nTransfer& transfer : decision.transfers) EXPECT_EQ(transfer.chain_length, 8U);
}

TEST(M2nRules, split_by_themselves_unless_one_nvlink_domain_holds_all) {
  M2nTask task = task_of(side(2, 2, 0, 0), side(4, 2, 0, 4));
  const M2nChoice by_default{};
  EXPECT_TRUE(m2n_decide(task, by_default).mapping.split);
  task.one_domain = true;
  EXPECT_FALSE(m2n_decide(task, by_default).mapping.split);
  EXPECT_TRUE(m2n_decide(task, in_two_phases).mapping.split);
}

TEST(M2nRules, say_why_communicators_are_not_split) {
  EXPECT_EQ(m2n_decide(task_of(side(5, 1, 0, 0), side(8, 1, 0, 5)), in_two_phases).mapping.given_up,
            "a broadcast is balanced uniformly, on one communicator");
  // Replicas of three ranks in domains of four: shard 0 stands at 0 and 3 of the first domain, then at 2.
  M2nTask task = task_of(side(1, 4, 0, 0), M2nSide{4, 3, 4, 1, 3, {}});
  task.target.regions = {{{0, 0}, {2, 8}, 2}, {{2, 0}, {4, 8}, 2}, {{4, 0}, {6, 8}, 2}};
  EXPECT_EQ(m2n_decide(task, in_two_phases).mapping.given_up, "a step of a chain would join two rails");
  EXPECT_EQ(m2n_decide(task, node_aware).mapping.given_up, "");
}

}  // namespace
}  // namespace isthmus::m2n_rules_test
