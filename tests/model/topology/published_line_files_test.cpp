// The public files of `nvidia-smi topo -m`, `ibnetdiscover` and NCCL's log against the counts that were
// published with them. They lie outside the repository; without them the tests are skipped.

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "model/topology/topology_faults.hpp"
#include "tests/support/imported_topology.hpp"
#include "tests/support/published_data.hpp"

namespace isthmus::published_line_files_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::filesystem::path topologies() { return data_folder() / "topologies"; }

std::string text_of(const std::string& name) {
  return read_text_file(topologies() / name, max_topology_bytes);
}

struct PublishedMatrix {
  std::string name;
  std::size_t gpus, nics, nvlink_ends;
  std::vector<std::uint32_t> rails;
  std::vector<std::string> notable;  // codes of findings
};

TEST(PublishedLineFiles, of_nvidia_smi_have_the_published_counts_and_say_what_is_notable) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const std::vector<PublishedMatrix> files{
      {"hgx_h200_8x_intel_8nic", 8, 8, 144, {0, 1, 2, 3, 4, 5, 6, 7}, {}},
      {"h100_8x_vm_9nic_reversed_nccl1453",
       8,
       9,
       144,
       {8, 7, 6, 5, 4, 3, 2, 1, 0},
       {"nic-far-from-all-gpus"}},
      {"h100_8x_4compute_nics_nccl1357",
       8,
       6,
       144,
       {0, 1, 2, 3, 4, 5},
       {"rows-missing", "nic-far-from-all-gpus", "gpu-without-near-nic", "matrix-contradicts-itself"}},
      {"b200_8x_gpu2_off_nvlink_vllm16336",
       8,
       12,
       126,
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
       {"rows-missing", "gpu-without-nvlink"}},
      {"gb200_tray_4gpu_6nic_sglang11208", 4, 6, 72, {0, 1, 2, 3, 4, 5}, {"nic-far-from-all-gpus"}},
  };
  for (const PublishedMatrix& file : files) {
    SCOPED_TRACE(file.name);
    const std::string text = text_of("smi-topo/" + file.name + ".txt");
    EXPECT_EQ(recognise_topology(text), TopologyFormat::nvidia_smi);
    const ImportedTopology read = read_nvidia_smi(text, file.name);
    EXPECT_THAT(topology_faults(read.topology), IsEmpty());
    EXPECT_EQ(vertices_of(read.topology, VertexKind::gpu), file.gpus);
    EXPECT_EQ(vertices_of(read.topology, VertexKind::nic), file.nics);
    EXPECT_EQ(vertices_of(read.topology, VertexKind::nvswitch), 1U);
    EXPECT_EQ(nvlink_ends(read.topology), file.nvlink_ends);
    std::vector<std::uint32_t> rails;
    for (const BlockNic& nic : read.topology.types.front().nics) rails.push_back(nic.rail);
    EXPECT_EQ(rails, file.rails);
    for (const std::string& code : file.notable) EXPECT_THAT(texts_of(read, code), SizeIs(1)) << code;
    EXPECT_THAT(texts_of(read, "matrix-asymmetric"), IsEmpty());
    EXPECT_THAT(texts_of(read, "rates-not-in-file"), ElementsAre(HasSubstr("fabric.nvlink_bandwidth")));
  }
}

TEST(PublishedLineFiles, with_a_gpu_off_nvlink_are_read_as_seven_and_one) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const ImportedTopology read =
      read_nvidia_smi(text_of("smi-topo/b200_8x_gpu2_off_nvlink_vllm16336.txt"), "matrix");
  EXPECT_THAT(texts_of(read, "gpu-without-nvlink"), ElementsAre(HasSubstr("GPU2 has no NVLink")));
  EXPECT_THAT(texts_of(read, "gpu-without-nvlink"), ElementsAre(HasSubstr("7 + 1")));
}

TEST(PublishedLineFiles, of_a_fabric_have_its_published_counts) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const std::string text = text_of("ib/topograph_ibnetdiscover_mqm9701_ndr.out");
  EXPECT_EQ(recognise_topology(text), TopologyFormat::ibnetdiscover);
  const ImportedTopology read = read_ibnetdiscover(text, "fabric");
  const Topology& topology = read.topology;
  EXPECT_THAT(topology_faults(topology), IsEmpty());
  EXPECT_FALSE(topology.gpus_known);
  EXPECT_EQ(switches_of(topology, VertexKind::leaf), 31U);
  EXPECT_EQ(switches_of(topology, VertexKind::spine), 9U);
  EXPECT_THAT(topology.network.switches, SizeIs(40));
  std::uint32_t leaf_to_spine = 0;
  for (const NetworkCable& cable : topology.network.cables) {
    EXPECT_EQ(cable.wire, gigabytes_per_second(50));
    leaf_to_spine += cable.wires;
  }
  EXPECT_EQ(leaf_to_spine, 532U);
  const std::size_t adapters = vertices_of(topology, VertexKind::nic);
  EXPECT_EQ(adapters, 538U + 4U);
  EXPECT_THAT(texts_of(read, "aggregation-nodes"), ElementsAre(HasSubstr("40 adapters")));
  EXPECT_EQ(leaf_to_spine + adapters + 40, 1114U);
  EXPECT_EQ(std::count(topology.switch_of_nic.begin(), topology.switch_of_nic.end(), no_switch), 0);
}

TEST(PublishedLineFiles, of_a_fabric_show_its_missing_leaf_and_its_twelve_short_ones) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const ImportedTopology read =
      read_ibnetdiscover(text_of("ib/topograph_ibnetdiscover_mqm9701_ndr.out"), "fabric");
  EXPECT_THAT(texts_of(read, "leaf-missing"), ElementsAre(HasSubstr("03-01")));
  EXPECT_THAT(texts_of(read, "spine-ports-free"), ElementsAre(HasSubstr("ports 5 and 6")));
  const std::vector<std::pair<std::string, int>> expected{
      {"01-02", 14}, {"02-03", 15}, {"03-07", 15}, {"01-03", 16}, {"01-05", 16}, {"01-07", 16},
      {"02-04", 16}, {"02-06", 16}, {"04-02", 16}, {"04-04", 16}, {"01-01", 17}, {"01-08", 17}};
  const std::vector<std::string> found = texts_of(read, "leaf-short-of-up-links");
  EXPECT_THAT(found, SizeIs(expected.size()));
  for (const auto& [leaf, up] : expected) {
    const std::string text = "IBLEAF-" + leaf + " has " + std::to_string(up) + " up-links, most have 18";
    EXPECT_THAT(found, ::testing::Contains(HasSubstr(text)));
  }
  EXPECT_THAT(texts_of(read, "adapters-without-host"), ElementsAre(HasSubstr("72 adapters")));
}

TEST(PublishedLineFiles, of_a_fabric_put_each_rail_on_leaves_of_its_own) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const Topology topology =
      read_ibnetdiscover(text_of("ib/topograph_ibnetdiscover_mqm9701_ndr.out"), "fabric").topology;
  std::size_t nic = 0, agree = 0;
  for (const std::uint32_t type : topology.blocks) {
    for (const BlockNic& each : topology.types[type].nics) {
      const std::string& leaf = topology.network.switches[topology.switch_of_nic[nic++]].name;
      const std::size_t at = leaf.find("IBLEAF-") + 7;
      agree += leaf.substr(at, 2) == "0" + std::to_string(each.rail + 1) ? 1U : 0U;
    }
  }
  EXPECT_GE(agree, 530U) << "of 542; some cables of the listing are exchanged";
}

TEST(PublishedLineFiles, of_a_fabric_are_read_in_milliseconds) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const std::string text = text_of("ib/topograph_ibnetdiscover_mqm9701_ndr.out");
  const auto start = std::chrono::steady_clock::now();
  read_ibnetdiscover(text, "fabric");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1)) << "5 ms without sanitizers";
}

TEST(PublishedLineFiles, of_a_log_have_the_published_counts_and_the_planned_rates) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  const std::string text = text_of("nccl-log/h200_vm_system_block_ncclTests256.log");
  EXPECT_EQ(recognise_topology(text), TopologyFormat::nccl_log);
  const ImportedTopology read = read_nccl_log(text, "log");
  EXPECT_THAT(topology_faults(read.topology), IsEmpty());
  const Block& block = read.topology.types.front();
  EXPECT_EQ(vertices_of(read.topology, VertexKind::gpu), 8U);
  EXPECT_EQ(vertices_of(read.topology, VertexKind::nic), 8U);
  EXPECT_EQ(vertices_of(read.topology, VertexKind::nvswitch), 1U);
  EXPECT_EQ(nvlink_ends(read.topology), 144U);
  for (const BlockWire& wire : block.wires) EXPECT_EQ(wire.evidence, Evidence::nccl);
  EXPECT_EQ(block.vertices.front().attributes.at("rank"), "8");
  EXPECT_EQ(wire_between(block, 0, labelled(block, "chips not visible"))->rate, gigabytes_per_second(370.8));
  EXPECT_EQ(wire_between(block, labelled(block, "NUMA 0"), labelled(block, "NUMA 1"))->rate,
            gigabytes_per_second(16));
  EXPECT_THAT(texts_of(read, "pcie-slow"), SizeIs(1));
  const std::uint32_t net = labelled(block, "NET c"), bridge = labelled(block, "0000:65:00.0");
  ASSERT_NE(wire_between(block, net, bridge), nullptr);
  EXPECT_NE(wire_between(block, labelled(block, "0000:68:00.0"), bridge), nullptr);
}

TEST(PublishedLineFiles, of_another_projects_model_format_are_no_known_topology) {
  if (!std::filesystem::exists(topologies())) GTEST_SKIP() << "no published data";
  EXPECT_EQ(recognise_topology(text_of("ib/topograph_model_nvl72.yaml")), std::nullopt);
}

}  // namespace
}  // namespace isthmus::published_line_files_test
