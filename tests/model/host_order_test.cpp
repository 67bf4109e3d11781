#include "model/host_order.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

Fabric hosts(int count, const char* preset = "dgx-h100-superpod") {
  FabricSpec spec;
  spec.preset = preset;
  spec.hosts = count;
  return Fabric(spec);
}

TEST(HostOrder, interleaves_by_the_sides_shares) {
  const HostOrder order = host_order(PlacementKind::interleaved, hosts(6), 16, 32);
  EXPECT_EQ(order.train->hosts, (std::vector<int>{2, 5}));
  EXPECT_EQ(order.generate->hosts, (std::vector<int>{0, 1, 3, 4}));
}

TEST(HostOrder, gives_each_rack_its_share_of_both_sides) {
  const HostOrder order = host_order(PlacementKind::co_racked, hosts(64), 256, 256);
  ASSERT_EQ(order.train->hosts.size(), 32U);
  EXPECT_EQ(order.train->hosts[15], 15);
  EXPECT_EQ(order.train->hosts[16], 32);  // the second unit's first host
  EXPECT_EQ(order.generate->hosts.front(), 16);
  EXPECT_EQ(order.generate->hosts.back(), 63);
}

TEST(HostOrder, is_contiguous_within_one_rack) {
  const HostOrder order = host_order(PlacementKind::co_racked, hosts(4, "dgx-h100"), 16, 16);
  EXPECT_EQ(order.train->hosts, (std::vector<int>{0, 1}));
  EXPECT_EQ(order.generate->hosts, (std::vector<int>{2, 3}));
}

TEST(HostOrder, along_the_rails_keeps_the_hosts_of_each_side) {
  const HostOrder order = host_order(PlacementKind::rail_aligned, hosts(3), 8, 16);
  EXPECT_TRUE(order.train->by_rail && order.generate->by_rail);
  EXPECT_EQ(order.train->hosts, (std::vector<int>{0}));
  EXPECT_EQ(order.generate->hosts, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace isthmus
