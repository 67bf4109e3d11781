#include "model/topology/names.hpp"

#include <gtest/gtest.h>

#include "tests/support/topology_generator.hpp"

namespace isthmus {
namespace {

TEST(TopologyNames, number_hosts_through_the_fabric_and_parts_on_their_host) {
  const BlockPlace place{3, 12, 96, 96};
  EXPECT_EQ(vertex_name({VertexKind::gpu, 0, 5}, place), "GPU 5 on host 12");
  EXPECT_EQ(vertex_name({VertexKind::nic, 1, 2, "mlx5_4"}, place), "NIC 2 (mlx5_4) on host 13");
  EXPECT_EQ(vertex_name({VertexKind::nvswitch, std::nullopt, 7}, place), "NVSwitch chip 7 of block 3");
}

TEST(TopologyNames, of_switches_fall_back_to_tier_and_number) {
  const Network network{{{VertexKind::leaf, ""}, {VertexKind::spine, "core of all"}}, {}};
  EXPECT_EQ(switch_name(network, 0), "leaf 0");
  EXPECT_EQ(switch_name(network, 1), "core of all");
}

TEST(TopologyNames, places_follow_each_other) {
  const std::vector<BlockPlace> places = block_places(healthy_topology(3, 4));
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[2].gpu, 8u);
  EXPECT_EQ(places[3].host, 3u);
  EXPECT_EQ(places[3].nic, 12u);
}

TEST(TopologyNames, of_rates_tell_any_two_apart) {
  EXPECT_EQ(rate_text({450'000'000'000}), "450 GB/s");
  EXPECT_EQ(rate_text({22'350'000'001}), "22.350000001 GB/s");
  EXPECT_EQ(rate_text({0}), "unknown");
}

}  // namespace
}  // namespace isthmus
