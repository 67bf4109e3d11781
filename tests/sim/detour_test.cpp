#include "sim/detour.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace isthmus::sim {
namespace {

Fabric detour_fabric() { return Fabric({"dgx-h100", 2, std::nullopt, std::nullopt}); }

std::vector<char> down(const Fabric& fabric, const std::vector<std::optional<LinkId>>& links) {
  std::vector<char> result(fabric.links().size(), 0);
  for (const auto& link : links) result[link->index()] = 1;
  return result;
}

bool crosses(const std::vector<LinkId>& way, std::optional<LinkId> link) {
  return std::find(way.begin(), way.end(), *link) != way.end();
}

TEST(Detour, is_the_route_itself_where_nothing_is_down) {
  const Fabric fabric = detour_fabric();
  EXPECT_EQ(*way_around(fabric, {0}, {8}, down(fabric, {})), fabric.route({0}, {8}));
}

TEST(Detour, leaves_through_the_next_gpus_nic) {
  const Fabric fabric = detour_fabric();
  const auto way = way_around(fabric, {0}, {8}, down(fabric, {fabric.nic_out({0})}));
  ASSERT_TRUE(way);
  EXPECT_TRUE(crosses(*way, fabric.nvlink_out({0})) && crosses(*way, fabric.nic_out({1})));
  EXPECT_TRUE(crosses(*way, fabric.nic_in({8})));
}

TEST(Detour, arrives_through_the_next_gpus_nic_and_round_the_host) {
  const Fabric fabric = detour_fabric();
  const auto way = way_around(fabric, {7}, {15}, down(fabric, {fabric.nic_out({7}), fabric.nic_in({15})}));
  ASSERT_TRUE(way);
  EXPECT_TRUE(crosses(*way, fabric.nic_out({0})) && crosses(*way, fabric.nic_in({8})));
}

TEST(Detour, is_none_inside_an_nvlink_domain_or_where_all_nics_are_down) {
  const Fabric fabric = detour_fabric();
  EXPECT_FALSE(way_around(fabric, {0}, {1}, down(fabric, {fabric.nvlink_out({0})})));
  std::vector<std::optional<LinkId>> nics;
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) nics.push_back(fabric.nic_out({gpu}));
  EXPECT_FALSE(way_around(fabric, {0}, {8}, down(fabric, nics)));
}

}  // namespace
}  // namespace isthmus::sim
