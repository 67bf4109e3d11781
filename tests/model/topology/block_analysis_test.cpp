#include "model/topology/block_analysis.hpp"

#include <functional>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/topology_generator.hpp"

namespace isthmus {
namespace {

/// Whether NVLink joins two GPUs, by walking over chips and GPUs of the partition.
bool joined(const Block& block, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t partition = block.gpus[from].partition;
  std::set<std::uint32_t> seen{block.gpus[from].vertex};
  const auto passes = [&](std::uint32_t vertex) {
    for (const BlockGpu& gpu : block.gpus)
      if (gpu.vertex == vertex) return gpu.partition == partition;
    return true;
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (const BlockWire& wire : block.wires) {
      if (wire.kind != WireKind::nvlink || seen.count(wire.from) == 0 || !passes(wire.to)) continue;
      grown = seen.insert(wire.to).second || grown;
    }
  }
  return seen.count(block.gpus[to].vertex) > 0;
}

RC_GTEST_PROP(BlockAnalysis, domains_are_what_a_walk_over_nvlink_reaches, ()) {
  Block block = *arbitrary_block();
  for (BlockGpu& gpu : block.gpus) gpu.partition = *rc::gen::inRange(0u, 2u);
  const BlockAnalysis analysis = analyse(block);
  std::set<std::uint32_t> domains;
  for (std::uint32_t a = 0; a < block.gpus.size(); ++a) {
    domains.insert(analysis.gpus[a].domain);
    for (std::uint32_t b = 0; b < block.gpus.size(); ++b)
      RC_ASSERT((analysis.gpus[a].domain == analysis.gpus[b].domain) == joined(block, a, b));
  }
  RC_ASSERT(domains.size() == analysis.domains);
}

/// Stages to every vertex by relaxing each wire until nothing changes.
std::vector<std::uint64_t> stages_from(const Block& block, std::uint32_t start) {
  constexpr std::uint64_t far = 1'000'000;
  std::vector<std::uint64_t> stages(block.vertices.size(), far);
  stages[start] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockWire& wire : block.wires) {
      const VertexKind kind = block.vertices[wire.from].kind;
      const bool passes = wire.from == start || kind == VertexKind::pcie_switch || kind == VertexKind::cpu;
      if (wire.kind == WireKind::nvlink || !passes) continue;
      const std::uint64_t reached = stages[wire.from] + (wire.kind == WireKind::socket ? 16 : 1);
      if (reached >= stages[wire.to]) continue;
      stages[wire.to] = reached;
      changed = true;
    }
  }
  return stages;
}

RC_GTEST_PROP(BlockAnalysis, nearest_nics_are_those_that_relaxation_finds, ()) {
  Block block = *arbitrary_block();
  for (BlockGpu& gpu : block.gpus) gpu.nic.reset();
  const BlockAnalysis analysis = analyse(block);
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    const std::vector<std::uint64_t> stages = stages_from(block, block.gpus[gpu].vertex);
    std::uint64_t least = 999'999;
    for (const BlockNic& nic : block.nics) least = std::min(least, stages[nic.vertex]);
    std::vector<std::uint32_t> nearest;
    for (std::uint32_t nic = 0; nic < block.nics.size(); ++nic)
      if (stages[block.nics[nic].vertex] == least) nearest.push_back(nic);
    RC_ASSERT(analysis.gpus[gpu].nics == nearest);
    RC_ASSERT(analysis.gpus[gpu].crosses_socket == (!nearest.empty() && least >= 16));
  }
}

TEST(BlockAnalysis, takes_all_ports_of_the_card_that_a_gpu_is_told_to_use) {
  Topology topology = healthy_topology();
  Block& block = topology.types[0];
  block.nics[2].card = block.nics[3].card = 7;
  block.gpus[0].nic = 3;
  const BlockAnalysis analysis = analyse(block);
  EXPECT_EQ(analysis.gpus[0].nics, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(analysis.gpus[0].nic, Bandwidth{100'000'000'000});
}

TEST(BlockAnalysis, does_not_know_a_sum_with_an_unknown_part) {
  Topology topology = healthy_topology();
  topology.types[0].wires[0].rate = {0};
  const BlockAnalysis analysis = analyse(topology.types[0]);
  EXPECT_FALSE(analysis.gpus[0].nvlink.has_value());
  EXPECT_EQ(analysis.gpus[1].nvlink, Bandwidth{450'000'000'000});
}

}  // namespace
}  // namespace isthmus
