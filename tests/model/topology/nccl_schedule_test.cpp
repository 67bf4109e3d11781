#include "model/topology/nccl_schedule.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using Sizes = std::vector<std::uint32_t>;

std::vector<std::vector<NcclRound>> all_rounds(std::uint32_t groups, std::uint32_t group) {
  std::vector<std::vector<NcclRound>> rounds;
  for (std::uint32_t position = 0; position < groups * group; ++position) {
    rounds.push_back(peer_rounds(position, groups * group, group));
  }
  return rounds;
}

RC_GTEST_PROP(NcclSchedule, every_round_is_a_permutation_in_which_each_receives_what_it_is_sent, ()) {
  const auto groups = *rc::gen::inRange(1u, 20u), group = *rc::gen::inRange(1u, 9u);
  const auto rounds = all_rounds(groups, group);
  for (std::size_t round = 0; round < rounds[0].size(); ++round) {
    std::set<std::uint32_t> targets;
    for (std::uint32_t position = 0; position < groups * group; ++position) {
      const std::uint32_t target = rounds[position][round].send_to;
      targets.insert(target);
      RC_ASSERT(rounds[target][round].receive_from == position);
    }
    RC_ASSERT(targets.size() == groups * group);
  }
}

RC_GTEST_PROP(NcclSchedule, all_rounds_hold_every_pair_once_and_begin_with_oneself, ()) {
  const auto groups = *rc::gen::inRange(1u, 20u), group = *rc::gen::inRange(1u, 9u);
  const auto rounds = all_rounds(groups, group);
  for (std::uint32_t position = 0; position < groups * group; ++position) {
    RC_ASSERT(rounds[position].size() == groups * group);
    RC_ASSERT((rounds[position][0] == NcclRound{position, position}));
    std::set<std::uint32_t> targets;
    for (const NcclRound& round : rounds[position]) targets.insert(round.send_to);
    RC_ASSERT(targets.size() == groups * group);
  }
}

TEST(NcclSchedule, four_groups_are_met_in_the_order_0_1_3_2) {
  EXPECT_THAT(group_deltas(4), ElementsAre(0, 1, 3, 2));
  EXPECT_THAT(group_deltas(8), ElementsAre(0, 1, 3, 6, 2, 7, 5, 4));
  EXPECT_THAT(group_deltas(3), ElementsAre(0, 1, 2));  // of four, without the one that is not there
  EXPECT_THAT(group_deltas(1), ElementsAre(0));
}

TEST(NcclSchedule, groups_hold_eight_ranks_or_the_common_divisor_with_the_domains) {
  EXPECT_EQ(schedule_group(Sizes{8, 8}), 8u);
  EXPECT_EQ(schedule_group(Sizes{4, 4}), 4u);
  EXPECT_EQ(schedule_group(Sizes{72, 72}), 8u);
  EXPECT_EQ(schedule_group(Sizes{36, 36}), 4u);
  EXPECT_EQ(schedule_group(Sizes{8, 6}), 2u);
  EXPECT_EQ(schedule_group(Sizes{8, 7}), 1u);
  EXPECT_EQ(schedule_group(Sizes{72}), 72u);  // one domain is one group
  NcclSettings settings;
  settings.schedule_group_size = 4;
  EXPECT_EQ(schedule_group(Sizes{8, 8}, settings), 4u);
}

TEST(NcclSchedule, peers_of_a_position_follow_the_places_of_its_groups) {
  const auto rounds = peer_rounds(5, 8, 4);  // group 1, place 1
  EXPECT_THAT(rounds, ElementsAre(NcclRound{5, 5}, NcclRound{6, 4}, NcclRound{7, 7}, NcclRound{4, 6},
                                  NcclRound{1, 1}, NcclRound{2, 0}, NcclRound{3, 3}, NcclRound{0, 2}));
}

TEST(NcclSchedule, the_eight_peers_of_a_group_share_their_channels_and_groups_spread_by_reversed_bits) {
  const NcclChannelRule rule{16, 8, 4};
  for (std::uint32_t round = 0; round < 8; ++round) {
    EXPECT_EQ(base_channel(round, rule), 0u);
    EXPECT_EQ(base_channel(8 + round, rule), 8u);
    EXPECT_EQ(base_channel(16 + round, rule), 4u);
    EXPECT_EQ(base_channel(24 + round, rule), 12u);
    EXPECT_EQ(base_channel(16 * 8 + round, rule), 0u);  // beyond T groups it begins again
  }
  EXPECT_EQ(part_channel(12, 3, rule), 15u);
  EXPECT_EQ(part_channel(12, 4, rule), 0u);
}

TEST(NcclSchedule, in_one_domain_every_round_has_a_base_of_its_own) {
  const NcclChannelRule rule{32, 8, 1};
  Sizes bases;
  for (std::uint32_t round = 0; round < 8; ++round) bases.push_back(base_channel(round, rule));
  EXPECT_THAT(bases, ElementsAre(0, 16, 8, 24, 4, 20, 12, 28));
  EXPECT_EQ(base_channel(33, rule), 16u);
}

TEST(NcclSchedule, groups_of_more_than_eight_take_a_base_for_every_eight) {
  const NcclChannelRule rule{16, 16, 2};
  EXPECT_EQ(base_channel(7, rule), 0u);
  EXPECT_EQ(base_channel(8, rule), 8u);
  EXPECT_EQ(base_channel(16, rule), 4u);
  EXPECT_EQ(base_channel(24, rule), 12u);
}

}  // namespace
}  // namespace isthmus
