#include "model/topology/host_paths.hpp"

#include <gtest/gtest.h>

#include "tests/support/block_builder.hpp"

namespace isthmus {
namespace {

/// GPUs 0, 1 and 2 in a row, joined directly.
Block row_of_three() {
  BlockBuilder builder("row");
  const std::uint32_t a = builder.gpu(), b = builder.gpu(), c = builder.gpu();
  builder.wire(WireKind::nvlink, a, b, 100, 4);
  builder.wire(WireKind::nvlink, b, c, 100, 4);
  return builder.block;
}

TEST(HostPaths, lead_over_nvlink_through_one_gpu_at_most) {
  Block block = row_of_three();
  const auto paths = HostPaths(block).nvlink_from(0);
  ASSERT_TRUE(paths[1] && paths[2]);
  EXPECT_EQ(paths[1]->wires.size(), 1u);
  EXPECT_EQ(paths[2]->wires.size(), 2u);
  EXPECT_FALSE(paths[0] && !paths[0]->wires.empty());
}

TEST(HostPaths, never_leave_the_partition) {
  Block block = row_of_three();
  block.gpus[1].partition = 1;
  const auto paths = HostPaths(block).nvlink_from(0);
  EXPECT_FALSE(paths[1]);
  EXPECT_FALSE(paths[2]);
  EXPECT_EQ(nvlink_domains(block), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(HostPaths, domains_are_what_nvlink_joins_numbered_by_first_gpu) {
  EXPECT_EQ(nvlink_domains(row_of_three()), (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(nvlink_domains(hgx_host()), std::vector<std::uint32_t>(8, 0));
  EXPECT_EQ(nvlink_domains(gb200_rack(18)), std::vector<std::uint32_t>(72, 0));
}

TEST(HostPaths, pass_through_no_other_gpu_and_no_nic) {
  for (const Block& block : {hgx_host(), a100_host(), gb200_rack(2)}) {
    const HostPaths paths(block);
    for (const BlockGpu& gpu : block.gpus) {
      const auto found = paths.from(gpu.vertex);
      for (std::uint32_t to = 0; to < found.size(); ++to) {
        if (!found[to]) continue;
        for (const std::uint32_t wire : found[to]->wires) {
          const std::uint32_t past = block.wires[wire].to;
          if (past == to) continue;
          EXPECT_NE(block.vertices[past].kind, VertexKind::gpu);
          EXPECT_NE(block.vertices[past].kind, VertexKind::nic);
          EXPECT_NE(block.wires[wire].kind, WireKind::nvlink);
        }
      }
    }
  }
}

TEST(HostPaths, cost_below_one_switch_less_than_through_a_cpu_and_that_less_than_between_sockets) {
  const Block block = hgx_host();
  const auto found = HostPaths(block).from(block.gpus[0].vertex);
  const auto cost = [&](std::uint32_t nic) { return found[block.nics[nic].vertex]->cost; };
  EXPECT_LT(cost(0), through_cpu);
  EXPECT_GE(cost(1), through_cpu);
  EXPECT_LT(cost(1), cost(4));
  const Block rack = gb200_rack(1);
  const auto tray = HostPaths(rack).from(rack.gpus[0].vertex);
  EXPECT_LT(tray[rack.nics[0].vertex]->cost, through_cpu);
}

}  // namespace
}  // namespace isthmus
