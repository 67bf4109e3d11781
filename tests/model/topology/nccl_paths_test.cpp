#include "model/topology/nccl_paths.hpp"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/block_builder.hpp"

namespace isthmus {
namespace {

std::string shown(const NcclPath& path) {
  return std::string(to_string(path.kind)) + " " + std::to_string(path.bandwidth.value / 100'000'000);
}

// Bandwidths in 0.1 GB/s.
TEST(NcclPaths, on_an_hgx_host_gpus_meet_over_nvlink_and_have_their_nic_below_one_switch) {
  const NcclPaths paths = nccl_paths(hgx_host());
  EXPECT_EQ(shown(paths.between(0, 0)), "LOC 50000");
  EXPECT_EQ(shown(paths.between(0, 7)), "NVL 3708");
  EXPECT_EQ(shown(paths.gpu_to_cpu[0]), "PHB 480");
  EXPECT_EQ(shown(paths.to_net(0, 0).send), "PIX 480");
  EXPECT_EQ(shown(paths.to_net(0, 0).receive), "PIX 480");
  EXPECT_TRUE(paths.to_net(0, 0).gpudirect_send);
  EXPECT_TRUE(all_joined_by_nvlink(paths));
}

TEST(NcclPaths, a_gpu_sends_through_the_owner_of_a_nic_and_receives_past_the_cpu) {
  const NcclPaths paths = nccl_paths(hgx_host());
  EXPECT_EQ(shown(paths.to_net(0, 1).send), "PXN 480");
  EXPECT_EQ(paths.to_net(0, 1).relay, 1u);
  EXPECT_TRUE(paths.to_net(0, 1).gpudirect_send);
  EXPECT_EQ(shown(paths.to_net(0, 1).receive), "PHB 480");
  EXPECT_EQ(shown(paths.to_net(0, 7).receive), "SYS 220");
  EXPECT_FALSE(paths.to_net(0, 7).gpudirect_receive);
  NcclSettings off;
  off.pxn = false;
  EXPECT_EQ(shown(nccl_paths(hgx_host(), off).to_net(0, 1).send), "PHB 480");
}

TEST(NcclPaths, a_nic_below_grace_is_p2c_for_its_own_gpu) {
  const NcclPaths paths = nccl_paths(gb200_rack(2));
  EXPECT_EQ(shown(paths.gpu_to_cpu[0]), "C2C 2250");
  EXPECT_EQ(shown(paths.to_net(0, 0).send), "P2C 480");
  EXPECT_EQ(shown(paths.to_net(0, 1).receive), "P2C 480");
  EXPECT_TRUE(paths.to_net(0, 0).gpudirect_receive);
  EXPECT_EQ(shown(paths.to_net(0, 2).send), "PXN 480");
  EXPECT_EQ(shown(paths.to_net(0, 2).receive), "SYS 60");
  EXPECT_EQ(shown(paths.to_net(0, 4).send), "DIS 0");  // another tray
  EXPECT_EQ(shown(paths.between(0, 7)), "NVL 7218");
}

TEST(NcclPaths, without_gpudirect_over_c2c_a_nic_below_grace_is_reached_through_host_memory) {
  NcclSettings settings;
  settings.gpudirect_c2c = false;
  const NcclPaths paths = nccl_paths(gb200_rack(1), settings);
  EXPECT_EQ(shown(paths.to_net(0, 0).send), "PHB 480");
  EXPECT_FALSE(paths.to_net(0, 0).gpudirect_send);
  EXPECT_FALSE(paths.to_net(0, 0).gpudirect_receive);
}

TEST(NcclPaths, without_pxn_over_c2c_a_nic_below_the_other_grace_has_no_relay) {
  NcclSettings settings;
  settings.pxn_c2c = false;
  const NcclPaths paths = nccl_paths(gb200_rack(1), settings);
  EXPECT_EQ(shown(paths.to_net(0, 0).send), "P2C 480");
  EXPECT_EQ(shown(paths.to_net(0, 2).send), "SYS 60");
}

TEST(NcclPaths, a_nic_below_the_other_grace_is_not_p2c_even_if_there_is_none_nearer) {
  Block block = gb200_rack(1);
  block.nics.erase(block.nics.begin(), block.nics.begin() + 2);
  const NcclPaths paths = nccl_paths(block);
  EXPECT_EQ(shown(paths.to_net(0, 0).receive), "SYS 60");
  EXPECT_EQ(shown(paths.to_net(2, 0).receive), "P2C 480");
}

TEST(NcclPaths, gpudirect_is_refused_by_gpu_or_device_or_level_and_then_leads_through_the_cpu) {
  Block gpu_off = hgx_host(), net_off = hgx_host();
  gpu_off.gpus[0].gpudirect = false;
  net_off.vertices[net_off.nics[0].vertex].attributes["net.gdr"] = "0";
  NcclSettings level;
  level.gpudirect_level = PathKind::loc;
  for (const NcclPaths& paths : {nccl_paths(gpu_off), nccl_paths(net_off), nccl_paths(hgx_host(), level)}) {
    EXPECT_EQ(shown(paths.to_net(0, 0).receive), "PHB 480");
    EXPECT_FALSE(paths.to_net(0, 0).gpudirect_send);
    EXPECT_FALSE(paths.to_net(0, 0).gpudirect_receive);
  }
  EXPECT_TRUE(nccl_paths(gpu_off).to_net(1, 1).gpudirect_send);
}

/// One GPU and one NIC below a chain of switches.
Block chain(std::uint32_t switches, bool flattened, const char* sm = "90") {
  BlockBuilder builder("chain");
  const auto cpu = builder.vertex(VertexKind::cpu), gpu = builder.gpu();
  builder.attribute(gpu, "gpu.sm", sm);
  std::uint32_t above = cpu;
  for (std::uint32_t i = 0; i < switches; ++i) {
    const auto pcie = builder.vertex(VertexKind::pcie_switch);
    builder.wire(WireKind::pcie, pcie, above, i == 0 ? 63 : 15.75);
    if (i == 0) builder.wire(WireKind::pcie, builder.nic(50), pcie, 63);
    if (i > 0 && flattened) builder.attribute(pcie, "pci.flattened", "1");
    above = pcie;
  }
  builder.wire(WireKind::pcie, gpu, above, 63);
  return builder.block;
}

TEST(NcclPaths, two_switches_in_a_row_are_pxb_and_flattened_ones_are_one) {
  EXPECT_EQ(shown(nccl_paths(chain(1, false)).to_net(0, 0).send), "PIX 480");
  EXPECT_EQ(shown(nccl_paths(chain(2, false)).to_net(0, 0).send), "PXB 120");
  EXPECT_EQ(shown(nccl_paths(chain(2, true)).to_net(0, 0).send), "PIX 480");
}

TEST(NcclPaths, old_gpus_without_nvlink_receive_by_gpudirect_and_do_not_send_by_it) {
  const NcclPaths old = nccl_paths(chain(1, false, "70")), fresh = nccl_paths(chain(1, false, "80"));
  EXPECT_FALSE(old.to_net(0, 0).gpudirect_send);
  EXPECT_TRUE(old.to_net(0, 0).gpudirect_receive);
  EXPECT_TRUE(fresh.to_net(0, 0).gpudirect_send);
}

/// GPUs in a row, each with NVLink to the next and PCIe to the CPU.
Block row_of_gpus(std::uint32_t count, const char* vendor = "GenuineIntel") {
  BlockBuilder builder("row");
  const auto cpu = builder.vertex(VertexKind::cpu);
  builder.attribute(cpu, "cpu.vendor", vendor);
  std::optional<std::uint32_t> last;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto gpu = builder.gpu();
    builder.wire(WireKind::pcie, gpu, cpu, 63);
    if (last) builder.wire(WireKind::nvlink, *last, gpu, 100, 4);
    last = gpu;
  }
  return builder.block;
}

TEST(NcclPaths, nvlink_leads_through_one_gpu_and_never_through_two) {
  const NcclPaths paths = nccl_paths(row_of_gpus(4));
  EXPECT_EQ(shown(paths.between(0, 1)), "NVL 824");
  EXPECT_EQ(shown(paths.between(0, 2)), "NVB 824");
  EXPECT_EQ(shown(paths.between(0, 3)), "PHB 480");
  NcclSettings settings;
  settings.nvb = false;
  EXPECT_EQ(shown(nccl_paths(row_of_gpus(4), settings).between(0, 2)), "PHB 480");
  EXPECT_FALSE(all_joined_by_nvlink(paths));
}

TEST(NcclPaths, nvlink_leads_through_a_switch_or_through_a_gpu_and_never_through_both) {
  BlockBuilder builder("one beside the switch");
  const auto cpu = builder.vertex(VertexKind::cpu), chip = builder.vertex(VertexKind::nvswitch);
  const auto first = builder.gpu(), second = builder.gpu(), beside = builder.gpu();
  for (const auto gpu : {first, second, beside}) builder.wire(WireKind::pcie, gpu, cpu, 63);
  for (const auto gpu : {first, second}) builder.wire(WireKind::nvlink, gpu, chip, 100, 4);
  builder.wire(WireKind::nvlink, second, beside, 100, 4);
  const NcclPaths paths = nccl_paths(builder.block);
  EXPECT_EQ(shown(paths.between(0, 1)), "NVL 824");
  EXPECT_EQ(shown(paths.between(1, 2)), "NVL 824");
  EXPECT_EQ(shown(paths.between(0, 2)), "PHB 480");
}

TEST(NcclPaths, two_gpus_of_an_amd_host_exchange_past_its_memory_and_three_or_those_of_intel_do_not) {
  const auto direct = [](std::uint32_t count, const char* vendor, const NcclSettings& settings) {
    Block block = row_of_gpus(count, vendor);
    for (std::uint32_t gpu = 0; gpu < count; ++gpu) block.gpus[gpu].partition = gpu;  // no NVLink
    const NcclPaths paths = nccl_paths(block, settings);
    EXPECT_EQ(shown(paths.between(0, 1)), "PHB 480");
    return paths.direct(0, 1);
  };
  EXPECT_TRUE(direct(2, "AuthenticAMD", {}));
  EXPECT_FALSE(direct(3, "AuthenticAMD", {}));
  EXPECT_FALSE(direct(2, "GenuineIntel", {}));
  NcclSettings settings;
  settings.p2p_level = PathKind::phb;
  EXPECT_TRUE(direct(2, "GenuineIntel", settings));
}

TEST(NcclPaths, one_way_nvlink_serves_one_way) {
  Block block = row_of_gpus(2);
  block.wires.pop_back();
  const NcclPaths paths = nccl_paths(block);
  EXPECT_EQ(shown(paths.between(0, 1)), "NVL 824");
  EXPECT_EQ(shown(paths.between(1, 0)), "PHB 480");
}

TEST(NcclPaths, partitions_meet_through_host_memory_and_hosts_over_the_network) {
  Block block = hgx_host();
  for (std::size_t gpu = 4; gpu < 8; ++gpu) block.gpus[gpu].partition = 1;
  EXPECT_EQ(shown(nccl_paths(block).between(0, 3)), "NVL 3708");
  EXPECT_EQ(shown(nccl_paths(block).between(0, 4)), "SYS 220");
  EXPECT_TRUE(nccl_paths(block).direct(0, 3));
  EXPECT_FALSE(nccl_paths(block).direct(0, 4));
  Block rack = gb200_rack(2);
  for (std::size_t gpu = 4; gpu < 8; ++gpu) rack.gpus[gpu].partition = 1;
  EXPECT_EQ(shown(nccl_paths(rack).between(0, 4)), "NET 0");
}

TEST(NcclPaths, the_network_beats_a_path_through_the_cpus_but_not_nvlink) {
  Block apart = hgx_host();
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) apart.gpus[gpu].partition = gpu;
  const NcclPaths paths = nccl_paths(apart);
  EXPECT_TRUE(network_beats_gpu_path(paths, 0, 4));   // 48 over 22
  EXPECT_FALSE(network_beats_gpu_path(paths, 0, 1));  // 48 over 48
  EXPECT_FALSE(network_beats_gpu_path(nccl_paths(hgx_host()), 0, 4));
}

TEST(NcclPaths, of_two_ways_of_one_kind_the_faster_is_taken_and_of_two_fast_ones_the_shorter) {
  NcclSystem system;
  system.vertices.resize(4);
  for (NcclVertex& vertex : system.vertices) vertex.kind = NcclVertexKind::pcie;
  const auto link = [&](std::uint32_t from, std::uint32_t to, double rate) {
    system.vertices[from].links.push_back({to, NcclLinkKind::pcie, gigabytes_per_second(rate)});
  };
  link(0, 3, 12);
  link(0, 1, 24);
  link(1, 3, 24);
  EXPECT_EQ(search_paths(system, 0, {})[3].bandwidth, gigabytes_per_second(24));
  EXPECT_EQ(search_paths(system, 0, {})[3].hops, 2u);
  link(0, 2, 24);
  link(2, 1, 24);
  EXPECT_EQ(search_paths(system, 0, {})[1].hops, 1u);
}

/// The best kind, then bandwidth, over all simple walks: the oracle of the search, without NVB.
void walk(const NcclSystem& system, std::uint32_t base, std::vector<bool>& seen, std::uint32_t at,
          const NcclPath& so_far, std::vector<NcclPath>& best) {
  for (const NcclLink& link : system.vertices[at].links) {
    if (seen[link.to]) continue;
    const bool cpu = system.vertices[at].kind == NcclVertexKind::cpu ||
                     system.vertices[link.to].kind == NcclVertexKind::cpu;
    const PathKind kind = cpu ? PathKind::phb : PathKind::pxb;
    const NcclPath path{std::max(so_far.kind, kind), std::min(so_far.bandwidth, link.bandwidth),
                        so_far.hops + 1};
    NcclPath& known = best[link.to];
    if (path.kind < known.kind || (path.kind == known.kind && path.bandwidth > known.bandwidth)) known = path;
    seen[link.to] = true;
    walk(system, base, seen, link.to, path, best);
    seen[link.to] = false;
  }
}

RC_GTEST_PROP(NcclPaths, have_the_best_kind_and_in_trees_the_bandwidth_of_all_walks, ()) {
  NcclSystem system;
  const auto count = *rc::gen::inRange(2u, 7u);
  for (std::uint32_t i = 0; i < count; ++i) {
    system.vertices.push_back({*rc::gen::element(NcclVertexKind::pcie, NcclVertexKind::cpu), 0, {}});
  }
  const bool tree = *rc::gen::arbitrary<bool>();
  for (std::uint32_t to = 1; to < count; ++to) {
    for (int extra = tree ? 1 : 2; extra > 0; --extra) {
      const auto from = *rc::gen::inRange(0u, to);
      const Bandwidth rate = gigabytes_per_second(*rc::gen::inRange(1, 5));
      system.vertices[from].links.push_back({to, NcclLinkKind::pcie, rate});
      system.vertices[to].links.push_back({from, NcclLinkKind::pcie, rate});
    }
  }
  std::vector<NcclPath> best(count);
  best[0] = {PathKind::loc, gigabytes_per_second(5000), 0};
  std::vector<bool> seen(count, false);
  seen[0] = true;
  walk(system, 0, seen, 0, best[0], best);
  const auto found = search_paths(system, 0, {});
  for (std::uint32_t vertex = 0; vertex < count; ++vertex) {
    RC_ASSERT(found[vertex].kind == best[vertex].kind);
    if (tree) RC_ASSERT(found[vertex].bandwidth == best[vertex].bandwidth);
    RC_ASSERT(found[vertex].bandwidth <= best[vertex].bandwidth);
  }
}

RC_GTEST_PROP(NcclPaths, are_the_same_in_both_directions_on_hosts_of_equal_gpus, ()) {
  HgxSpec spec;
  spec.gpus_per_nic = 1u << *rc::gen::inRange(0, 3);
  spec.pcie = *rc::gen::element(15.75, 31.5, 63.0);
  spec.nic = *rc::gen::element(12.5, 25.0, 50.0);
  const Block block = *rc::gen::element(hgx_host(spec), a100_host(), flat_host(), gb200_rack(3));
  const NcclPaths paths = nccl_paths(block);
  for (std::uint32_t a = 0; a < paths.system.gpus.size(); ++a) {
    for (std::uint32_t b = 0; b < paths.system.gpus.size(); ++b) {
      RC_ASSERT(paths.between(a, b) == paths.between(b, a));
    }
  }
}

}  // namespace
}  // namespace isthmus
