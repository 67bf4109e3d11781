#include "model/topology/nccl_channels.hpp"

#include <array>
#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/block_builder.hpp"

namespace isthmus {
namespace {

constexpr Bandwidth hundredths(std::int64_t value) { return {value * 10'000'000}; }

NcclPaths hgx(double wire = 25) {
  HgxSpec spec;
  spec.nvlink_wire = wire;
  return nccl_paths(hgx_host(spec));
}

struct Machine {
  NcclPaths paths;
  std::uint32_t domains;
  NcclRings rings;
  std::uint32_t collective, total;
};

TEST(NcclChannels, rings_and_channels_follow_the_table_of_machines) {
  const std::array<std::uint32_t, 2> two{0, 1};
  const std::vector<Machine> table{
      {hgx(), 1, {12, hundredths(3000)}, 24, 32},
      {nccl_paths(hgx_host(), {}, two), 1, {12, hundredths(3000)}, 24, 32},
      {hgx(), 4, {8, hundredths(4800)}, 16, 16},
      {hgx(50), 4, {8, hundredths(4800)}, 16, 16},
      {nccl_paths(gb200_rack(18)), 1, {16, hundredths(4500)}, 32, 32},
      {nccl_paths(gb200_rack(18)), 2, {16, hundredths(4510)}, 32, 32},
  };
  for (std::size_t row = 0; row < table.size(); ++row) {
    const Machine& machine = table[row];
    const NcclRingShape shape = ring_shape(machine.paths, machine.domains);
    EXPECT_EQ(collective_rings(shape), machine.rings) << "row " << row;
    EXPECT_EQ(collective_channels(shape), machine.collective) << "row " << row;
    EXPECT_EQ(p2p_channels(machine.collective), machine.total) << "row " << row;
  }
}

TEST(NcclChannels, gpus_up_to_sm80_double_their_rings_however_slow) {
  EXPECT_EQ(collective_rings(ring_shape(nccl_paths(a100_host()), 1)), (NcclRings{12, hundredths(2000)}));
  EXPECT_EQ(collective_rings(ring_shape(nccl_paths(a100_host()), 4)), (NcclRings{8, hundredths(2400)}));
}

TEST(NcclChannels, few_channels_of_fast_rings_are_copied_once_more) {
  const NcclRingShape shape{90, 2, 8, hundredths(37080), hundredths(37080), hundredths(4800), 2};
  // 2 x 48 are doubled to 4 x 24, and the copies follow the halved speed.
  EXPECT_EQ(collective_rings(shape), (NcclRings{4, hundredths(2400)}));
  EXPECT_EQ(collective_channels(shape), 8u);
  NcclRingShape faster = shape;
  faster.sm = 100;
  faster.nets = 1;
  faster.gpu_to_net = hundredths(9600);
  EXPECT_EQ(collective_rings(faster), (NcclRings{2, hundredths(4800)}));
  EXPECT_EQ(collective_channels(faster), 8u);
}

TEST(NcclChannels, collective_channels_are_capped_and_raised_by_settings) {
  const NcclRingShape shape = ring_shape(hgx(), 1);
  NcclSettings settings;
  settings.max_ctas = 16;
  EXPECT_EQ(collective_channels(shape, settings), 16u);
  settings = {};
  settings.min_ctas = 32;
  EXPECT_EQ(collective_channels(shape, settings), 32u);
  settings = {};
  settings.max_p2p_channels = 4;
  EXPECT_EQ(p2p_channels(24, settings), 4u);
  settings = {};
  settings.min_p2p_channels = 33;
  EXPECT_EQ(p2p_channels(24, settings), 64u);
}

TEST(NcclChannels, a_peer_starts_with_two_channels_per_wire_or_what_its_nics_need) {
  EXPECT_EQ(local_peer_start(hgx(), 0, 1), 36u);
  EXPECT_EQ(remote_peer_start(hgx(), 0), 4u);
  HgxSpec fast;
  fast.nic = 100;
  fast.pcie = 121;
  EXPECT_EQ(remote_peer_start(nccl_paths(hgx_host(fast)), 0), 7u);  // 96 / 14; a power of two later
  EXPECT_EQ(channels_per_peer(7, 16, {16, 2}), 8u);
  NcclSettings settings;
  settings.channels_per_network_peer = 3;
  EXPECT_EQ(remote_peer_start(hgx(), 0, settings), 3u);
  Block without = hgx_host();
  without.nics.clear();
  EXPECT_EQ(remote_peer_start(nccl_paths(without), 0), 2u);
}

TEST(NcclChannels, the_network_sets_the_channels_of_nvlink_peers_too) {
  EXPECT_EQ(least_peer_start(hgx(), 1), 36u);
  EXPECT_EQ(least_peer_start(hgx(), 2), 4u);
  BlockBuilder builder("no NVLink");
  const auto cpu = builder.vertex(VertexKind::cpu);
  for (int i = 0; i < 2; ++i) builder.wire(WireKind::pcie, builder.gpu(), cpu, 63);
  EXPECT_EQ(least_peer_start(nccl_paths(builder.block), 1), 2u);
}

TEST(NcclChannels, channels_per_peer_fall_with_ranks_as_in_the_table_for_400_gbit) {
  for (std::uint32_t ranks = 16; ranks <= 1024; ++ranks) {
    const NcclCommunicatorSize size{ranks, 2};
    const auto row = [&](std::uint32_t at16, std::uint32_t at32, std::uint32_t at64) {
      EXPECT_EQ(channels_per_peer(4, 16, size), at16) << ranks;
      EXPECT_EQ(channels_per_peer(4, 32, size), at32) << ranks;
      EXPECT_EQ(channels_per_peer(4, 64, size), at64) << ranks;
    };
    if (ranks <= 32) row(4, 4, 4);
    if (ranks > 32 && ranks <= 64) row(2, 4, 4);
    if (ranks > 64 && ranks <= 128) row(1, 2, 4);
    if (ranks > 128 && ranks <= 256) row(1, 1, 2);
    if (ranks > 256) row(1, 1, 1);
  }
}

TEST(NcclChannels, channels_per_peer_fall_with_ranks_as_in_the_table_for_800_gbit) {
  for (std::uint32_t ranks = 9; ranks <= 1024; ++ranks) {
    const NcclCommunicatorSize size{ranks, 2};
    const auto row = [&](std::uint32_t at16, std::uint32_t at32, std::uint32_t at64) {
      EXPECT_EQ(channels_per_peer(8, 16, size), at16) << ranks;
      EXPECT_EQ(channels_per_peer(8, 32, size), at32) << ranks;
      EXPECT_EQ(channels_per_peer(8, 64, size), at64) << ranks;
    };
    if (ranks <= 16) row(8, 8, 8);
    if (ranks > 16 && ranks <= 32) row(4, 8, 8);
    if (ranks > 32 && ranks <= 64) row(2, 4, 8);
    if (ranks > 64 && ranks <= 128) row(1, 2, 4);
    if (ranks > 128 && ranks <= 256) row(1, 1, 2);
    if (ranks > 256) row(1, 1, 1);
  }
}

TEST(NcclChannels, one_domain_has_all_channels_for_every_peer_whatever_its_ranks) {
  for (std::uint32_t ranks = 2; ranks <= 576; ++ranks) {
    EXPECT_EQ(channels_per_peer(36, 32, {ranks, 1}), 32u);
  }
}

TEST(NcclChannels, a_stated_number_of_peers_or_channels_takes_the_place_of_the_ranks) {
  NcclSettings settings;
  settings.max_p2p_peers = 16;
  EXPECT_EQ(channels_per_peer(4, 16, {1024, 128}, settings), 4u);
  settings = {};
  settings.channels_per_network_peer = 4;
  EXPECT_EQ(channels_per_peer(4, 16, {1024, 128}, settings), 4u);
}

RC_GTEST_PROP(NcclChannels, channels_per_peer_are_a_power_of_two_and_never_grow_with_ranks, ()) {
  const auto start = *rc::gen::inRange(1u, 65u), ranks = *rc::gen::inRange(2u, 4096u);
  const std::uint32_t total = 1u << *rc::gen::inRange(0, 7);
  const std::uint32_t channels = channels_per_peer(start, total, {ranks, 2});
  RC_ASSERT(std::has_single_bit(channels));
  RC_ASSERT(channels <= total);
  RC_ASSERT(channels_per_peer(start, total, {ranks + *rc::gen::inRange(0u, 64u), 2}) <= channels);
}

}  // namespace
}  // namespace isthmus
