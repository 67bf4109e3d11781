#include "model/topology/own_nics.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/block_builder.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

using Nics = std::vector<std::optional<std::uint32_t>>;

TEST(OwnNics, each_gpu_of_an_hgx_host_or_a_tray_uses_the_nic_beside_it) {
  EXPECT_EQ(own_nics(hgx_host()), (Nics{0, 1, 2, 3, 4, 5, 6, 7}));
  const Nics rack = own_nics(gb200_rack(3));
  for (std::uint32_t gpu = 0; gpu < 12; ++gpu) EXPECT_THAT(rack[gpu], Optional(gpu));
}

TEST(OwnNics, two_gpus_and_two_nics_below_one_switch_take_one_each) {
  const Nics own = own_nics(a100_host());
  ASSERT_EQ(own.size(), 8u);
  for (std::uint32_t gpu = 0; gpu < 8; gpu += 2) {
    EXPECT_EQ((std::set{*own[gpu], *own[gpu + 1]}), (std::set{gpu, gpu + 1})) << gpu;
  }
}

TEST(OwnNics, equally_near_nics_of_a_virtual_machine_are_taken_in_bit_reversed_order) {
  EXPECT_EQ(own_nics(flat_host()), (Nics{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(OwnNics, two_gpus_beside_one_nic_share_it) {
  EXPECT_EQ(own_nics(hgx_host({.gpus_per_nic = 2})), (Nics{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(OwnNics, a_gpu_that_is_told_its_nic_uses_it_while_it_is_plugged_in) {
  Block block = hgx_host();
  block.gpus[2].nic = 6;
  EXPECT_THAT(own_nics(block)[2], Optional(6u));
  std::vector<char> plugged(8, 1);
  plugged[6] = 0;
  EXPECT_THAT(own_nics(block, plugged)[2], Optional(2u));
}

TEST(OwnNics, without_any_nic_plugged_in_there_is_none) {
  EXPECT_EQ(own_nics(hgx_host(), std::vector<char>(8, 0)), Nics(8));
}

RC_GTEST_PROP(OwnNics, are_plugged_in_and_on_the_gpus_own_host, ()) {
  const Block block = *rc::gen::elementOf(
      std::vector<Block>{hgx_host(), hgx_host({.gpus_per_nic = 2}), a100_host(), flat_host(), gb200_rack(5)});
  const auto plugged =
      *rc::gen::container<std::vector<char>>(block.nics.size(), rc::gen::inRange<char>(0, 2));
  const Nics own = own_nics(block, plugged);
  RC_ASSERT(own.size() == block.gpus.size());
  const auto host_of = [&](std::uint32_t vertex) { return block.vertices[vertex].host; };
  for (std::size_t gpu = 0; gpu < own.size(); ++gpu) {
    bool any = false;
    for (std::size_t nic = 0; nic < plugged.size(); ++nic) {
      any = any || (plugged[nic] && host_of(block.nics[nic].vertex) == host_of(block.gpus[gpu].vertex));
    }
    RC_ASSERT(own[gpu].has_value() == any);
    if (!any) continue;
    RC_ASSERT(plugged[*own[gpu]] != 0);
    RC_ASSERT(host_of(block.nics[*own[gpu]].vertex) == host_of(block.gpus[gpu].vertex));
  }
}

}  // namespace
}  // namespace isthmus
