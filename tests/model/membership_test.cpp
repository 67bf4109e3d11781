#include "model/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/membership_case.hpp"

namespace isthmus {
namespace {

using test::MembershipCase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Membership changed(const MembershipCase& made) {
  const Scenario scenario = made.scenario();
  return change_membership(scenario, resolve(scenario), made.change);
}

std::vector<InputFault> faults_of(const MembershipCase& made) {
  const Scenario scenario = made.scenario();
  return membership_faults(scenario, resolve(scenario), made.change);
}

/// Engines over two hosts: 1, 2 and 3, 4.
MembershipCase two_engines(MembershipChange change) {
  MembershipCase made;
  made.generate = "{gpus: 32, tp: 16}";
  made.change = std::move(change);
  return made;
}

TEST(Membership, drops_and_adds_whole_replicas) {
  MembershipCase made;  // training on host 0, generation on 1 and 2
  made.change = {{1}, {}, {}};
  EXPECT_EQ(changed(made).scenario.generate->gpus, 8);
  made.change = {{}, {}, {3, 5}};
  const Membership grown = changed(made);
  EXPECT_EQ(grown.scenario.generate->gpus, 32);
  EXPECT_THAT(grown.scenario.generate_ranks->hosts, ElementsAre(1, 2, 3, 5));
  EXPECT_TRUE(same_content(grown.scenario, parse_scenario(to_yaml(grown.scenario), grown.scenario.file)));
}

TEST(Membership, leaves_hosts_idle_that_make_no_replica) {
  const Membership after = changed(two_engines({{2}, {}, {}}));
  EXPECT_EQ(after.scenario.generate->gpus, 16);
  EXPECT_EQ(after.idle.size(), 1U);
}

TEST(Membership, seats_a_new_host_where_one_is_missing) {
  const Membership after = changed(two_engines({{3}, {}, {5}}));
  EXPECT_THAT(after.scenario.generate_ranks->hosts, ElementsAre(1, 2, 5, 4));
}

TEST(Membership, touches_no_replica_that_nobody_leaves) {
  const Membership after = changed(two_engines({{2}, {}, {}}));
  EXPECT_THAT(after.scenario.generate_ranks->hosts, ElementsAre(3, 4));
  EXPECT_THAT(after.idle, ElementsAre(1));
}

TEST(Membership, joins_halves_of_two_broken_replicas) {
  const Membership after = changed(two_engines({{2, 3}, {}, {}}));
  EXPECT_THAT(after.scenario.generate_ranks->hosts, ElementsAre(1, 4));
}

TEST(Membership, keeps_explicit_numbers_of_engines_true) {
  MembershipCase made;
  made.generate = "{gpus: 16, tp: 4, dp: 4}";
  made.change = {{1}, {}, {}};
  EXPECT_EQ(changed(made).scenario.generate->dp, 2);
}

TEST(Membership, lets_nobody_relay_who_has_left) {
  MembershipCase made;
  made.generate = "{gpus: 12, tp: 4}";
  const Scenario scenario = made.scenario();
  const Refit before = resolve(scenario);
  ASSERT_EQ(before.relay_ranks, 4U);
  const Membership after = change_membership(scenario, before, {{2}, {}, {}});
  EXPECT_EQ(after.refit.relay_ranks, 0U);
}

TEST(MembershipUnit, holds_all_ranks_that_share_experts) {
  GenerateSpec generate;
  generate.tp = 4;
  EXPECT_EQ(generation_unit(generate), 4);
  generate.ep = 16;
  EXPECT_EQ(generation_unit(generate), 16);
  generate.pp = 2;
  EXPECT_EQ(generation_unit(generate), 32);
}

TEST(MembershipFaults, say_which_hosts_there_are) {
  MembershipCase made;
  made.change = {{5}, {}, {2, 9}};
  const std::vector<InputFault> faults = faults_of(made);
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].where.file, "--leave");
  EXPECT_THAT(faults[0].allowed, HasSubstr("0 train, 1-2 generate"));
  EXPECT_THAT(faults[1].found, HasSubstr("host 2, which generates already"));
  EXPECT_THAT(faults[2].allowed, HasSubstr("neither side uses 3-5"));
  EXPECT_EQ(faults[2].change, "--set fabric.hosts=10");
}

TEST(MembershipFaults, keep_one_replica_and_one_trainer) {
  MembershipCase made = two_engines({{1, 3, 4}, {}, {}});
  ASSERT_EQ(faults_of(made).size(), 1U);
  EXPECT_THAT(faults_of(made)[0].allowed, HasSubstr("at least 16 GPUs, which one replica takes: 2 hosts"));
  made.change = {{1, 3}, {}, {}};
  EXPECT_TRUE(faults_of(made).empty());
  made.change = {{0}, {}, {}};
  EXPECT_THAT(faults_of(made)[0].found, HasSubstr("no GPUs left for training"));
}

TEST(MembershipFaults, name_the_nearest_layouts_that_work) {
  MembershipCase made;
  made.train = "{gpus: 24, tp: 2, ep: 4, etp: 1, pp: 1}";
  made.change = {{2}, {}, {}};
  EXPECT_TRUE(faults_of(made).empty()) << "16 GPUs are two thirds of the replicas";
  made.train = "{gpus: 16, tp: 1, ep: 16, etp: 1}";
  made.change = {{1}, {}, {}};
  const std::vector<InputFault> faults = faults_of(made);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].found, "8 GPUs for training");
  EXPECT_THAT(faults[0].allowed, HasSubstr("nearest layouts that work: 8 GPUs: tp 1, ep 8, pp 1"));
  made.train = "{gpus: 16, tp: 1, ep: 8, etp: 1}";
  EXPECT_TRUE(faults_of(made).empty());
}

TEST(HostList, joins_ranges) {
  EXPECT_EQ(host_list({7, 0, 1, 2, 7}), "0-2, 7");
  EXPECT_EQ(host_list({}), "none");
}

}  // namespace
}  // namespace isthmus
