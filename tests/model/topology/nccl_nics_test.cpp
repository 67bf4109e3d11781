#include "model/topology/nccl_nics.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/block_builder.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> nets_of_gpus(const NcclPaths& paths, std::uint32_t channel = 0) {
  std::vector<std::uint32_t> nets;
  for (std::uint32_t gpu = 0; gpu < paths.system.gpus.size(); ++gpu) {
    nets.push_back(net_of_channel(paths, gpu, channel).value());
  }
  return nets;
}

TEST(NcclNics, a_gpu_has_the_nic_below_its_switch) {
  EXPECT_THAT(nets_of_gpus(nccl_paths(hgx_host())), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(nets_of_gpus(nccl_paths(hgx_host()), 5), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(NcclNics, two_gpus_and_two_nics_of_a_switch_pair_up) {
  EXPECT_THAT(nets_of_gpus(nccl_paths(a100_host())), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(NcclNics, two_gpus_share_the_one_nic_of_their_switch) {
  HgxSpec spec;
  spec.gpus_per_nic = 2;
  EXPECT_THAT(nets_of_gpus(nccl_paths(hgx_host(spec))), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
}

TEST(NcclNics, a_flat_machine_deals_its_nics_by_reversed_bits) {
  EXPECT_THAT(nets_of_gpus(nccl_paths(flat_host())), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
}

TEST(NcclNics, the_two_gpus_of_a_grace_have_one_nic_each) {
  EXPECT_THAT(nets_of_gpus(nccl_paths(gb200_rack(2))), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

Block two_nics_for_one_gpu(bool one_card) {
  BlockBuilder builder("two ports");
  const auto cpu = builder.vertex(VertexKind::cpu), pcie = builder.vertex(VertexKind::pcie_switch);
  builder.wire(WireKind::pcie, pcie, cpu, 63);
  builder.wire(WireKind::pcie, builder.gpu(), pcie, 63);
  for (std::uint32_t port = 0; port < 2; ++port) {
    const auto card = one_card ? std::optional<std::uint32_t>(0) : std::nullopt;
    builder.wire(WireKind::pcie, builder.nic(25, 0, card), pcie, 31.5);
  }
  return builder.block;
}

TEST(NcclNics, channels_alternate_between_two_nics_of_a_gpu) {
  const NcclPaths paths = nccl_paths(two_nics_for_one_gpu(false));
  std::vector<std::uint32_t> nets;
  for (std::uint32_t channel = 0; channel < 4; ++channel) {
    nets.push_back(net_of_channel(paths, 0, channel).value());
  }
  EXPECT_THAT(nets, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(own_bandwidth(paths, 0).nets, 2u);
  EXPECT_EQ(own_bandwidth(paths, 0).total, gigabytes_per_second(48));
}

TEST(NcclNics, ports_of_one_card_are_one_device_with_the_rate_of_both) {
  const NcclPaths paths = nccl_paths(two_nics_for_one_gpu(true));
  ASSERT_EQ(paths.system.nets.size(), 1u);
  EXPECT_THAT(paths.system.nets[0].ports, ElementsAre(0, 1));
  EXPECT_EQ(paths.system.nets[0].rate, gigabytes_per_second(50));
  EXPECT_EQ(own_bandwidth(paths, 0).total, gigabytes_per_second(48));
}

TEST(NcclNics, policies_spread_channels_over_all_or_a_few_of_the_own_nics) {
  const NcclPaths paths = nccl_paths(flat_host());
  const auto used = [&](const NcclNicPolicy& policy) {
    std::vector<std::uint32_t> nets;
    for (std::uint32_t channel = 0; channel < 4; ++channel) {
      nets.push_back(net_of_channel(paths, 1, channel, policy).value());
    }
    return nets;
  };
  EXPECT_THAT(used({}), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(used({NcclNicPolicy::Kind::all, 1}), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(used({NcclNicPolicy::Kind::at_most, 2}), ElementsAre(4, 5, 4, 5));
}

TEST(NcclNics, a_sender_leaves_on_the_rail_of_the_receiver) {
  const NcclPaths paths = nccl_paths(hgx_host());
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    for (std::uint32_t target = 0; target < 8; ++target) {
      EXPECT_EQ(sending_net(paths, gpu, 0, target), (NcclSendChoice{target, target}));
    }
  }
}

TEST(NcclNics, without_pxn_a_sender_leaves_on_its_own_rail) {
  NcclSettings off, level0;
  off.pxn = false;
  level0.pxn_level = 0;
  for (const NcclSettings& settings : {off, level0}) {
    EXPECT_EQ(sending_net(nccl_paths(hgx_host(), settings), 2, 0, 5, settings), (NcclSendChoice{2, 2}));
  }
}

TEST(NcclNics, without_pxn_and_crossing_the_receivers_rail_is_taken_without_a_relay) {
  NcclSettings settings;
  settings.pxn = false;
  settings.cross_nic = 0;
  EXPECT_EQ(sending_net(nccl_paths(hgx_host(), settings), 2, 0, 5, settings), (NcclSendChoice{5, 2}));
}

TEST(NcclNics, level_1_takes_the_receivers_rail_only_where_the_path_is_good_already) {
  NcclSettings settings;
  settings.pxn_level = 1;
  EXPECT_EQ(sending_net(nccl_paths(hgx_host(), settings), 2, 0, 5, settings), (NcclSendChoice{5, 5}));
  EXPECT_EQ(sending_net(nccl_paths(flat_host(), settings), 2, 0, 5, settings), (NcclSendChoice{2, 2}));
}

TEST(NcclNics, a_flat_machine_has_no_relays_for_its_nics_are_behind_the_cpu) {
  EXPECT_EQ(sending_net(nccl_paths(flat_host()), 1, 0, 3), (NcclSendChoice{4, 1}));
}

TEST(NcclNics, a_communicator_without_the_receivers_number_on_this_host_sends_on_its_own_rail) {
  const std::array<std::uint32_t, 4> some{0, 1, 2, 3};
  const NcclPaths paths = nccl_paths(hgx_host(), {}, some);
  EXPECT_EQ(sending_net(paths, 2, 0, 5), (NcclSendChoice{2, 2}));
  EXPECT_EQ(sending_net(paths, 2, 0, 3), (NcclSendChoice{3, 3}));
}

TEST(NcclNics, relays_stay_on_the_tray_and_need_c2c_to_count) {
  EXPECT_EQ(sending_net(nccl_paths(gb200_rack(2)), 4, 0, 2), (NcclSendChoice{6, 6}));
  NcclSettings settings;
  settings.pxn_c2c = false;
  EXPECT_EQ(sending_net(nccl_paths(gb200_rack(2), settings), 4, 0, 2, settings), (NcclSendChoice{4, 4}));
}

TEST(NcclNics, no_relay_reaches_a_gpu_of_another_partition) {
  Block block = hgx_host();
  for (std::size_t gpu = 4; gpu < 8; ++gpu) block.gpus[gpu].partition = 1;
  EXPECT_EQ(sending_net(nccl_paths(block), 2, 0, 5), (NcclSendChoice{2, 2}));
  EXPECT_EQ(sending_net(nccl_paths(block), 2, 0, 3), (NcclSendChoice{3, 3}));
}

TEST(NcclNics, nics_count_until_they_fill_the_path_to_the_cpu) {
  const NcclOwnBandwidth own = own_bandwidth(nccl_paths(flat_host()), 0, {NcclNicPolicy::Kind::all, 1});
  EXPECT_EQ(own.nets, 1u);
  EXPECT_EQ(own.total, gigabytes_per_second(48));
}

TEST(NcclNics, three_nics_are_dealt_in_order) {
  Block block = flat_host();
  block.nics.resize(3);
  const std::array<std::uint32_t, 3> three{0, 1, 2};
  EXPECT_THAT(nets_of_gpus(nccl_paths(block, {}, three)), ElementsAre(0, 1, 2));
}

TEST(NcclNics, no_network_is_no_choice) {
  Block block = hgx_host();
  block.nics.clear();
  const NcclPaths paths = nccl_paths(block);
  EXPECT_EQ(net_of_channel(paths, 0, 0), std::nullopt);
  EXPECT_EQ(sending_net(paths, 0, 0, 1), std::nullopt);
}

/// A machine of one CPU, with any number of GPUs and NICs that all tie.
RC_GTEST_PROP(NcclNics, on_a_flat_machine_all_nics_are_used_alike_when_gpus_are_as_many, ()) {
  const std::uint32_t count = 1u << *rc::gen::inRange(0, 5);
  BlockBuilder builder("flat");
  const auto cpu = builder.vertex(VertexKind::cpu);
  for (std::uint32_t i = 0; i < count; ++i) builder.wire(WireKind::pcie, builder.gpu(), cpu, 63);
  for (std::uint32_t i = 0; i < count; ++i) builder.wire(WireKind::pcie, builder.nic(50), cpu, 63);
  const NcclPaths paths = nccl_paths(builder.block);
  std::vector<std::uint32_t> nets = nets_of_gpus(paths), all(count);
  for (std::uint32_t gpu = 0; gpu < count; ++gpu) RC_ASSERT(owner_of_net(paths, nets[gpu]) == gpu);
  std::sort(nets.begin(), nets.end());
  std::iota(all.begin(), all.end(), 0u);
  RC_ASSERT(nets == all);
}

}  // namespace
}  // namespace isthmus
