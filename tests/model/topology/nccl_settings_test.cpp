#include "model/topology/nccl_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> keys(const NcclSettings& settings) {
  std::vector<std::string> found;
  for (const InputFault& fault : nccl_setting_faults(settings)) found.push_back(fault.where.key);
  return found;
}

TEST(NcclSettings, defaults_have_no_faults_and_slots_of_512_kib) {
  EXPECT_THAT(nccl_setting_faults({}), IsEmpty());
  EXPECT_EQ(nccl_slot({}), Bytes{512 << 10});
}

TEST(NcclSettings, a_chunk_as_large_as_the_slot_is_taken_and_one_byte_more_delivers_wrong_data) {
  NcclSettings settings;
  settings.chunk = Bytes{512 << 10};
  EXPECT_THAT(nccl_setting_faults(settings), IsEmpty());
  settings.chunk = Bytes{(512 << 10) + 1};
  const auto faults = nccl_setting_faults(settings);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].where.key, "NCCL_CHUNK_SIZE");
  EXPECT_THAT(faults[0].found, HasSubstr("524289 bytes"));
  EXPECT_THAT(faults[0].found, HasSubstr("wrong"));
  EXPECT_THAT(faults[0].allowed, HasSubstr("524288"));
  settings.buffer = Bytes{8 << 20};
  EXPECT_THAT(nccl_setting_faults(settings), IsEmpty());
}

TEST(NcclSettings, every_count_outside_its_range_is_listed) {
  NcclSettings settings;
  settings.min_ctas = 32;
  settings.max_ctas = 64;
  settings.min_p2p_channels = 64;
  settings.channels_per_network_peer = 64;
  settings.max_p2p_peers = 1;
  settings.nic_policy = {NcclNicPolicy::Kind::at_most, 1};
  EXPECT_THAT(nccl_setting_faults(settings), IsEmpty());
  settings.min_ctas = 65;
  settings.max_ctas = 0;
  settings.min_p2p_channels = 0;
  settings.channels_per_network_peer = 65;
  settings.p2p_per_channel_network_gigabytes = 0;
  settings.max_p2p_peers = 0;
  settings.schedule_group_size = 0;
  settings.pxn_level = 3;
  settings.cross_nic = 3;
  settings.nic_policy.most = 0;
  settings.buffer = Bytes{8};
  settings.nvlink_chunk = Bytes{0};
  EXPECT_THAT(keys(settings),
              ::testing::UnorderedElementsAre(
                  "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_CTAS", "NCCL_MIN_P2P_NCHANNELS",
                  "NCCL_NCHANNELS_PER_NET_PEER", "NCCL_P2P_PER_CHANNEL_NET_BW", "NCCL_P2P_MAX_PEERS",
                  "NCCL_P2P_SCHEDULE_GROUP_SIZE", "NCCL_P2P_PXN_LEVEL", "NCCL_CROSS_NIC",
                  "NCCL_NETDEVS_POLICY", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_BUFFSIZE"));
}

TEST(NcclSettings, a_least_count_above_the_most_is_a_fault_and_one_that_equals_it_is_not) {
  NcclSettings settings;
  settings.min_p2p_channels = settings.max_p2p_channels = 16;
  EXPECT_THAT(nccl_setting_faults(settings), IsEmpty());
  settings.max_p2p_channels = 8;
  EXPECT_THAT(keys(settings), ::testing::ElementsAre("NCCL_MIN_P2P_NCHANNELS"));
}

}  // namespace
}  // namespace isthmus
