#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/topology_faults.hpp"
#include "tests/support/imported_topology.hpp"

namespace isthmus::nccl_log_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string header = "=== System : maxBw 48.0 totalBw 370.8 ===\n";
const std::string end = "==========================================\n";

/// A host of two sockets: a GPU and a NIC of two ports under one switch; a GPU and a NIC on the other CPU.
const std::string small =
    "CPU/0-0 (1/2/-1)\n"
    "+ SYS[16.0] - CPU/0-1\n"
    "+ PCI[24.0] - PCI/0-65000 (104c823200000000)\n"
    "              + PCI[48.0] - NIC/0-67000\n"
    "                            + NET[50.0] - NET/0-1 (0/2b/1/50.000000)\n"
    "                            + NET[25.0] - NET/0-a (0/2b/2/25.000000)\n"
    "              + PCI[48.0] - GPU/0-68000 (3)\n"
    "                            + NVL[370.8] - NVS/0-0\n"
    "CPU/0-1 (1/2/-1)\n"
    "+ SYS[16.0] - CPU/0-0\n"
    "+ PCI[24.0] - GPU/0-c8000 (2)\n"
    "              + NVL[370.8] - NVS/0-0\n"
    "+ PCI[12.0] - NIC/0-c9000\n"
    "              + NET[1.2] - NET/0-0 (0/0/1/1.250000)\n";

ImportedTopology read(const std::string& text) {
  ImportedTopology imported = read_nccl_log(text, "run.log");
  EXPECT_THAT(topology_faults(imported.topology), IsEmpty());
  return imported;
}

std::string refusal(const std::string& text) {
  try {
    read_nccl_log(text, "run.log");
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(NcclLog, gives_gpus_by_rank_and_ports_by_device_in_base_16) {
  const Block block = read(header + small + end).topology.types.front();
  ASSERT_THAT(block.gpus, SizeIs(2));
  EXPECT_EQ(block.vertices[block.gpus[0].vertex].label, "0000:c8:00.0") << "rank 2 before rank 3";
  ASSERT_THAT(block.nics, SizeIs(3));
  EXPECT_EQ(block.vertices[block.nics[2].vertex].attributes.at("dev"), "10");
  EXPECT_EQ(block.nics[1].card, block.nics[2].card);
  EXPECT_NE(block.nics[0].card, block.nics[1].card);
  EXPECT_EQ(block.nics[2].rate, gigabytes_per_second(25));
  EXPECT_EQ(block.nics[1].rail, 0U) << "the NICs that share a switch with a GPU come first";
  const std::uint32_t zero = labelled(block, "NUMA 0"), one = labelled(block, "NUMA 1");
  EXPECT_EQ(wire_between(block, zero, one)->kind, WireKind::socket);
  EXPECT_EQ(block.vertices[zero].attributes.at("vendor"), "AuthenticAMD");
}

TEST(NcclLog, ports_of_one_card_share_its_slot) {
  const Block block = read(header + small + end).topology.types.front();
  const std::uint32_t card = labelled(block, "0000:67:00.0"), bridge = labelled(block, "0000:65:00.0");
  EXPECT_EQ(block.vertices.at(card).kind, VertexKind::pcie_switch);
  EXPECT_EQ(wire_between(block, card, bridge)->rate, gigabytes_per_second(48));
  EXPECT_NE(wire_between(block, labelled(block, "NET 1"), card), nullptr);
}

TEST(NcclLog, prefixes_host_parts_and_other_processes_do_not_matter) {
  const Topology plain = read(header + small + end).topology;
  std::string prefixed = "h:1:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0\n", bare = with(header, "Bw", "Width");
  int stamp = 0;
  for (std::string rest = header + small + end; !rest.empty(); rest.erase(0, rest.find('\n') + 1)) {
    const std::string line = rest.substr(0, rest.find('\n') + 1);
    prefixed += fmt::format("[12:00:{}] h:1:9 [0] NCCL INFO {}h:2:9 [1] NCCL INFO {}", ++stamp, line, line);
  }
  for (const char c : small + end) bare += c;
  for (std::size_t at = bare.find("/0-"); at != std::string::npos; at = bare.find("/0-"))
    bare.replace(at, 3, "/");
  const ImportedTopology read_prefixed = read(prefixed);
  EXPECT_EQ(read_prefixed.topology, plain);
  EXPECT_THAT(texts_of(read_prefixed, "more-blocks"), ElementsAre(HasSubstr("1 more")));
  // Without host parts names get shorter, so that what hangs below them moves.
  EXPECT_EQ(refusal(bare), "accepted");
  EXPECT_EQ(read(bare).topology, plain);
}

TEST(NcclLog, hosts_of_one_clique_are_hosts_of_one_block_with_shared_chips) {
  const std::string text =
      header +
      "CPU/0-0 (3/0/-1)\n+ C2C[225.0] - GPU/0-901000 (0)\n+ PCI[24.0] - GPU/0-901000 (0)\n"
      "              + NVL[721.8] - NVS/0-0\nCPU/1-0 (3/0/-1)\n"
      "+ PCI[24.0] - GPU/1-901000 (1)\n              + NVL[721.8] - NVS/0-0\n" +
      end;
  const Block block = read(text).topology.types.front();
  EXPECT_EQ(block.hosts, 2U);
  EXPECT_EQ(block.vertices.at(labelled(block, "chips not visible")).host, std::nullopt);
  EXPECT_EQ(nvlink_ends(read(text).topology), 36U);
}

struct Plan {
  std::string rate;
  std::uint32_t links;
};

TEST(NcclLog, nvlinks_are_counted_from_what_nccl_plans_per_link) {
  for (const Plan& plan :
       {Plan{"370.8", 18}, Plan{"721.8", 18}, Plan{"240.0", 12}, Plan{"20.6", 1}, Plan{"80.2", 2}}) {
    const ImportedTopology imported = read(with(
        with(header + small + end, "370.8] - NVS", plan.rate + "] - NVS"), "NVL[370.8", "NVL[" + plan.rate));
    EXPECT_EQ(nvlink_ends(imported.topology), 2 * plan.links) << plan.rate;
  }
  const ImportedTopology odd =
      read(with(with(header + small + end, "370.8] - NVS", "333.3] - NVS"), "NVL[370.8", "NVL[333.3"));
  EXPECT_THAT(texts_of(odd, "nvlinks-not-counted"), ElementsAre(HasSubstr("2 NVLink")));
}

TEST(NcclLog, direct_links_are_read_both_ways_and_one_that_is_listed_once_is_reported) {
  const auto pair = [](const std::string& back) {
    return header +
           "CPU/0-0 (1/1/2)\n+ PCI[12.0] - GPU/0-7000 (0)\n              + NVL[40.0] - GPU/0-8000\n"
           "+ PCI[12.0] - GPU/0-8000 (1)\n" +
           back + end;
  };
  const ImportedTopology both = read(pair("              + NVL[20.0] - GPU/0-7000\n")), once = read(pair(""));
  EXPECT_EQ(wire_between(both.topology.types[0], 0, 1)->rate, gigabytes_per_second(40));
  EXPECT_EQ(wire_between(both.topology.types[0], 1, 0)->rate, gigabytes_per_second(20));
  EXPECT_THAT(texts_of(both, "link-one-way"), IsEmpty());
  EXPECT_THAT(texts_of(once, "link-one-way"), SizeIs(1));
  EXPECT_EQ(wire_between(once.topology.types[0], 1, 0)->rate, gigabytes_per_second(40));
}

TEST(NcclLog, a_cut_block_and_parts_of_unknown_kind_are_reported) {
  EXPECT_THAT(texts_of(read(header + small), "block-cut"), SizeIs(1));
  EXPECT_THAT(texts_of(read(header + small + end), "block-cut"), IsEmpty());
  const std::string more = "+ PCI[48.0] - GIN/0-3\n              + NET[50.0] - NET/0-7\n";
  const ImportedTopology imported = read(header + small + more + end);
  EXPECT_THAT(texts_of(imported, "unknown-part"), ElementsAre(HasSubstr("GIN/0-3")));
  EXPECT_EQ(imported.topology, read(header + small + end).topology);
}

TEST(NcclLog, what_nccl_does_not_print_is_refused_with_its_line) {
  const std::string good = header + small + end;
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_THAT(refusal(with(good, "24.0] - PCI", "24,0] - PCI")), HasSubstr("run.log:4: System: found"));
  EXPECT_THAT(refusal(with(good, "24.0] - PCI", "1e3] - PCI")), HasSubstr("run.log:4"));
  EXPECT_THAT(refusal(with(good, "24.0] - PCI", "-1.0] - PCI")), HasSubstr("run.log:4"));
  EXPECT_THAT(refusal(with(good, "24.0] - PCI", "9999999.0] - PCI")), HasSubstr("at most 100000"));
  EXPECT_THAT(refusal(with(good, "GPU/0-68000", "GPU/0-6800g")), HasSubstr("base 16"));
  EXPECT_THAT(refusal(with(good, "GPU/0-68000", "GPU")), HasSubstr("run.log:8"));
  EXPECT_THAT(refusal(with(good, "              + PCI[48.0] - GPU", "  + PCI[48.0] - GPU")),
              HasSubstr("a link 2 columns in"));
  EXPECT_THAT(refusal(with(good, "GPU/0-c8000", "GPU/0-68000")), HasSubstr("below two others"));
  EXPECT_THAT(refusal(with(good, "CPU/0-1 (1/2/-1)", "CPU/0-0 (1/2/-1)")), HasSubstr("the same CPU twice"));
  EXPECT_THAT(refusal(with(good, "NVL[370.8] - NVS", "SYS[370.8] - NVS")), HasSubstr("a link SYS"));
  EXPECT_THAT(refusal(with(good, "CPU/0-0 (1/2/-1)\n", "PCI/0-1\n")), HasSubstr("found \"PCI/0-1\""));
  EXPECT_THAT(refusal(header + end), HasSubstr("without a line"));
  EXPECT_THAT(refusal("NCCL INFO nothing\n"), HasSubstr("no line"));
  std::string flood = header;
  for (int i = 0; i < 5000; ++i) flood += fmt::format("CPU/0-{:x}\n", i);
  EXPECT_THAT(refusal(flood + end), HasSubstr("more than 4096 vertices"));
}

RC_GTEST_PROP(NcclLog, trees_come_back_as_they_were_printed, ()) {
  const int cpus = *rc::gen::inRange(1, 4);
  std::string text = header;
  std::vector<std::pair<int, int>> ranks;  // GPUs in each switch: first rank, count
  int rank = *rc::gen::inRange(0, 100), gpus = 0, ports = 0;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    text += fmt::format("CPU/0-{:x} (1/1/207)\n", cpu);
    for (int other = 0; other < cpus; ++other)
      if (other != cpu) text += fmt::format("+ SYS[40.0] - CPU/0-{:x}\n", other);
    const int bridges = *rc::gen::inRange(0, 4);
    for (int bridge = 0; bridge < bridges; ++bridge) {
      text += fmt::format("+ PCI[24.0] - PCI/0-{:x} (0)\n", (cpu + 1) * 0x100000 + bridge * 0x1000);
      const int cards = *rc::gen::inRange(0, 3), on_bridge = *rc::gen::inRange(0, 3);
      for (int card = 0; card < cards; ++card, ++ports) {
        text += fmt::format("              + PCI[48.0] - NIC/0-{:x}\n", 0x1000000 + ports * 0x1000);
        text +=
            fmt::format("                            + NET[50.0] - NET/0-{:x} (0/1/1/50.000000)\n", ports);
      }
      for (int gpu = 0; gpu < on_bridge; ++gpu, ++gpus) {
        text +=
            fmt::format("              + PCI[48.0] - GPU/0-{:x} ({})\n", 0x2000000 + gpus * 0x1000, rank++);
        text += "                            + NVL[370.8] - NVS/0-0\n";
      }
      if (cards > 0 && on_bridge > 0) ranks.emplace_back(ports - cards, cards);
    }
  }
  const ImportedTopology imported = read_nccl_log(text + end, "log");
  RC_ASSERT(topology_faults(imported.topology).empty());
  RC_ASSERT(vertices_of(imported.topology, VertexKind::gpu) == static_cast<std::size_t>(gpus));
  RC_ASSERT(vertices_of(imported.topology, VertexKind::nic) == static_cast<std::size_t>(ports));
  RC_ASSERT(vertices_of(imported.topology, VertexKind::cpu) == static_cast<std::size_t>(cpus));
  RC_ASSERT(nvlink_ends(imported.topology) == static_cast<std::size_t>(18 * gpus));
  std::uint32_t rail = 0;  // NICs beside a GPU come first, in the order of the GPUs
  for (const auto& [first, count] : ranks)
    for (int port = first; port < first + count; ++port)
      RC_ASSERT(imported.topology.types.front().nics[static_cast<std::size_t>(port)].rail == rail++);
}

}  // namespace
}  // namespace isthmus::nccl_log_test
