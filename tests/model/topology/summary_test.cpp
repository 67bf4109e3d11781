#include "model/topology/summary.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "tests/support/topology_generator.hpp"
#include "tests/support/topology_relabelling.hpp"

namespace isthmus {
namespace {

constexpr Bandwidth gigabytes(std::int64_t number) { return {number * 1'000'000'000}; }

TEST(TopologySummary, of_a_healthy_fabric_counts_its_parts) {
  const TopologySummary summary = summarise(healthy_topology(4, 4, 2));
  EXPECT_EQ(summary.hosts, 4u);
  EXPECT_EQ(summary.gpus, 16u);
  EXPECT_EQ(summary.nics, 16u);
  EXPECT_EQ(summary.nvlink_domains, 4u);
  EXPECT_EQ(summary.nvlinks, 16u * 18u);
  EXPECT_EQ(summary.rails, 4u);
  EXPECT_EQ(summary.nvlink_per_gpu, (std::vector<RateCount>{{gigabytes(450), 16}}));
  EXPECT_EQ(summary.host_per_gpu, (std::vector<RateCount>{{gigabytes(63), 16}}));
  EXPECT_EQ(summary.nic_per_gpu, (std::vector<RateCount>{{gigabytes(50), 16}}));
  EXPECT_EQ(summary.switches, (std::array<std::uint64_t, 4>{4, 2, 0, 0}));
  EXPECT_EQ(summary.host_cables, 16u);
  EXPECT_EQ(summary.switch_cables, 32u);
  EXPECT_EQ(summary.leaf_oversubscription, (std::vector<RatioCount>{{0.5, 4}}));
  EXPECT_EQ(summary.bisection, gigabytes(8 * 50));
}

RC_GTEST_PROP(TopologySummary, does_not_depend_on_labels_or_the_order_of_vertices_and_types, ()) {
  const Topology topology = *arbitrary_topology();
  const Topology other = *arbitrary_relabelling(topology);
  RC_ASSERT(summarise(topology) == summarise(other));
}

RC_GTEST_PROP(TopologySummary, counts_as_a_walk_over_all_blocks_does, ()) {
  const Topology topology = *arbitrary_topology();
  std::uint64_t hosts = 0, gpus = 0, ends = 0;
  bool known = true;
  for (const std::uint32_t type : topology.blocks) {
    const Block& block = topology.types[type];
    hosts += block.hosts;
    known = known && block.nvlink_known;
    for (const BlockVertex& vertex : block.vertices) gpus += vertex.kind == VertexKind::gpu ? 1u : 0u;
    for (const BlockWire& wire : block.wires) {
      const bool end = wire.kind == WireKind::nvlink && block.vertices[wire.from].kind == VertexKind::gpu;
      ends += end ? wire.wires : 0u;
    }
  }
  const TopologySummary summary = summarise(topology);
  RC_ASSERT(summary.hosts == hosts);
  RC_ASSERT(summary.gpus == gpus);
  RC_ASSERT(summary.nvlinks == (known ? std::optional(ends) : std::nullopt));
}

TEST(TopologySummary, says_nothing_where_the_source_does_not) {
  Topology topology;
  topology.gpus_known = false;
  topology.types = {Block{"host"}};
  topology.blocks = {0, 0};
  const TopologySummary unknown = summarise(topology);
  EXPECT_FALSE(unknown.gpus || unknown.nvlinks || unknown.nvlink_domains || unknown.bisection);
  EXPECT_EQ(unknown.hosts, 2u);
  topology = healthy_topology();
  topology.types[0].nvlink_known = false;
  const TopologySummary no_nvlink = summarise(topology);
  EXPECT_FALSE(no_nvlink.nvlinks || no_nvlink.nvlink_domains || no_nvlink.nvlink_per_gpu[0].rate);
  EXPECT_EQ(no_nvlink.gpus, 16u);
}

TEST(TopologySummary, gives_ranges_where_gpus_differ) {
  Topology topology = healthy_topology();
  topology.types[0].wires[0].rate = topology.types[0].wires[1].rate = gigabytes(200);
  EXPECT_EQ(summarise(topology).nvlink_per_gpu,
            (std::vector<RateCount>{{gigabytes(425), 4}, {gigabytes(450), 12}}));
}

TEST(TopologySummary, divides_a_nic_among_the_gpus_that_are_nearest_to_it) {
  Topology topology = healthy_topology();
  topology.types[0].gpus[0].nic = 1;
  topology.types[0].gpus[1].nic = 1;
  EXPECT_EQ(summarise(topology).nic_per_gpu,
            (std::vector<RateCount>{{gigabytes(25), 8}, {gigabytes(50), 8}}));
}

}  // namespace
}  // namespace isthmus
