#include "model/topology/nccl_system.hpp"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/block_builder.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NcclSystem whole(const Block& block) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) members.push_back(gpu);
  return nccl_system(block, members);
}

std::size_t vertices_of(const NcclSystem& system, NcclVertexKind kind) {
  return static_cast<std::size_t>(
      std::count_if(system.vertices.begin(), system.vertices.end(),
                    [kind](const NcclVertex& vertex) { return vertex.kind == kind; }));
}

std::vector<std::int64_t> megabytes_out_of(const NcclSystem& system, std::uint32_t vertex) {
  std::vector<std::int64_t> rates;
  for (const NcclLink& link : system.vertices[vertex].links) {
    rates.push_back(link.bandwidth.value / 1'000'000);
  }
  return rates;
}

TEST(NcclSystem, nvlink_wires_count_by_compute_capability) {
  const std::array<std::pair<std::uint32_t, std::int64_t>, 10> table{{{50, 20'000},
                                                                      {60, 18'000},
                                                                      {70, 20'000},
                                                                      {80, 20'000},
                                                                      {86, 12'000},
                                                                      {89, 20'000},
                                                                      {90, 20'600},
                                                                      {99, 20'600},
                                                                      {100, 40'100},
                                                                      {121, 40'100}}};
  for (const auto& [sm, megabytes] : table) {
    EXPECT_EQ(planned_nvlink_wire(sm), Bandwidth{megabytes * 1'000'000}) << sm;
  }
}

TEST(NcclSystem, pcie_counts_as_nccl_plans_it) {
  const std::array<std::pair<double, double>, 5> table{
      {{0, 12}, {15.75, 12}, {31.5, 24}, {63, 48}, {121, 96}}};
  for (const auto& [nominal, planned] : table) {
    EXPECT_EQ(planned_pcie(gigabytes_per_second(nominal)), gigabytes_per_second(planned)) << nominal;
  }
}

TEST(NcclSystem, all_nvswitches_of_a_host_are_one_vertex_and_their_wires_add_up) {
  const NcclSystem system = whole(hgx_host());
  EXPECT_EQ(vertices_of(system, NcclVertexKind::nvswitch), 1u);
  ASSERT_EQ(system.gpus.size(), 8u);
  for (const NcclGpu& gpu : system.gpus) {
    EXPECT_THAT(megabytes_out_of(system, gpu.vertex), ElementsAre(18 * 20'600, 48'000));
    EXPECT_EQ(gpu.nvlink, gigabytes_per_second(18 * 20.6));
    EXPECT_EQ(gpu.nvlink_wire, gigabytes_per_second(20.6));
    EXPECT_EQ(gpu.sm, 90u);
  }
}

TEST(NcclSystem, a_rack_has_one_nvswitch_and_its_cpus_are_of_arm) {
  const NcclSystem system = whole(gb200_rack(2));
  EXPECT_EQ(vertices_of(system, NcclVertexKind::nvswitch), 1u);
  EXPECT_EQ(system.gpus[7].host, 1u);
  EXPECT_EQ(system.gpus[7].dev, 3u);
  EXPECT_EQ(system.gpus[7].nvlink, gigabytes_per_second(18 * 40.1));
  for (const NcclCpu& cpu : system.cpus) EXPECT_TRUE(cpu.arm);
}

TEST(NcclSystem, partitions_do_not_share_their_nvswitches) {
  Block block = hgx_host();
  for (std::size_t gpu = 4; gpu < 8; ++gpu) block.gpus[gpu].partition = 1;
  EXPECT_EQ(vertices_of(whole(block), NcclVertexKind::nvswitch), 2u);
}

TEST(NcclSystem, gpus_outside_the_communicator_are_not_there) {
  const std::array<std::uint32_t, 2> members{6, 1};
  const NcclSystem system = nccl_system(hgx_host(), members);
  ASSERT_EQ(system.gpus.size(), 2u);
  EXPECT_EQ(system.gpus[0].number, 6u);
  EXPECT_EQ(system.gpus[0].dev, 6u);
  EXPECT_EQ(vertices_of(system, NcclVertexKind::gpu), 2u);
}

TEST(NcclSystem, the_way_up_the_pcie_tree_is_the_last_of_a_switch) {
  BlockBuilder builder("slow below");
  const auto cpu = builder.vertex(VertexKind::cpu), pcie = builder.vertex(VertexKind::pcie_switch);
  builder.wire(WireKind::pcie, pcie, cpu, 63);
  builder.wire(WireKind::pcie, builder.gpu(), pcie, 15.75);
  builder.wire(WireKind::pcie, builder.nic(50), pcie, 31.5);
  const NcclSystem system = whole(builder.block);
  for (std::uint32_t vertex = 0; vertex < system.vertices.size(); ++vertex) {
    if (system.vertices[vertex].kind != NcclVertexKind::pcie) continue;
    EXPECT_THAT(megabytes_out_of(system, vertex), ElementsAre(24'000, 12'000, 48'000));
  }
}

std::int64_t socket_gigabytes(const std::map<std::string, std::string>& attributes, Evidence evidence) {
  BlockBuilder builder("two sockets");
  const auto first = builder.vertex(VertexKind::cpu), second = builder.vertex(VertexKind::cpu);
  builder.wire(WireKind::socket, first, second, 33, 1, evidence);
  for (const auto& [name, value] : attributes) builder.attribute(first, name, value);
  const NcclSystem system = whole(builder.block);
  return megabytes_out_of(system, system.cpus[0].vertex).front() / 1000;
}

TEST(NcclSystem, sockets_are_joined_as_fast_as_their_model_says) {
  const auto intel = [](const char* model) {
    return socket_gigabytes({{"cpu.arch", "x86_64"},
                             {"cpu.vendor", "GenuineIntel"},
                             {"cpu.familyid", "6"},
                             {"cpu.modelid", model}},
                            Evidence::vendor);
  };
  EXPECT_EQ(intel("79"), 6);
  EXPECT_EQ(intel("85"), 10);
  EXPECT_EQ(intel("143"), 22);
  EXPECT_EQ(intel("0xCF"), 40);
  EXPECT_EQ(socket_gigabytes({{"cpu.vendor", "AuthenticAMD"}}, Evidence::vendor), 16);
  EXPECT_EQ(socket_gigabytes({{"cpu.arch", "arm64"}}, Evidence::vendor), 6);
  EXPECT_EQ(socket_gigabytes({{"cpu.arch", "ppc64"}}, Evidence::vendor), 32);
  EXPECT_EQ(socket_gigabytes({{"cpu.vendor", "  Shanghai  "}}, Evidence::vendor), 6);
  EXPECT_EQ(socket_gigabytes({}, Evidence::vendor), 33);
  EXPECT_EQ(socket_gigabytes({{"cpu.vendor", "AuthenticAMD"}}, Evidence::nccl), 33);
}

TEST(NcclSystem, wires_with_planned_rates_keep_them_and_wires_without_a_rate_have_ncclss_default) {
  BlockBuilder builder("from a log");
  const auto cpu = builder.vertex(VertexKind::cpu), first = builder.gpu(), second = builder.gpu();
  builder.wire(WireKind::pcie, first, cpu, 24, 1, Evidence::nccl);
  builder.wire(WireKind::pcie, second, cpu, 0);
  builder.wire(WireKind::nvlink, first, second, 0, 4);
  builder.attribute(first, "gpu.sm", "80");
  const NcclSystem system = whole(builder.block);
  EXPECT_THAT(megabytes_out_of(system, system.gpus[0].vertex), ElementsAre(80'000, 24'000));
  EXPECT_EQ(system.vertices[system.gpus[1].vertex].links.back().bandwidth, gigabytes_per_second(12));
}

TEST(NcclSystem, a_port_without_a_rate_has_ten_gigabit) {
  BlockBuilder builder("unknown port");
  builder.nic(0);
  EXPECT_EQ(whole(builder.block).nets[0].rate, gigabytes_per_second(1.25));
}

TEST(NcclSystem, an_empty_block_is_an_empty_system) { EXPECT_THAT(whole(Block{}).vertices, IsEmpty()); }

}  // namespace
}  // namespace isthmus
