// Every published system XML against the counts that its origin states (GPUs, NIC ports, NVLink ends, switch
// chips) and against what is notable in it. Needs outside data.

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/topology/importers.hpp"
#include "model/topology/nccl_xml_writer.hpp"
#include "tests/support/published_data.hpp"

namespace isthmus::published_topologies_test {
namespace {

struct Expected {
  std::string file;
  std::size_t gpus = 0, nics = 0;
  std::uint64_t nvlinks = 0;
  std::int64_t chips = 0;  // visible
  std::vector<std::string> findings{};
};

const std::vector<Expected> expectations{
    {"h200x2-vm-topo.xml", 2, 1, 36, 0, {"nvswitch-hidden", "gpudirect-off-nic", "nic-shared"}},
    {"nccl-xml/ibmcloud_gx3d_h100x8.xml", 8, 8, 144, 4, {"virtual-bridge", "nic-order"}},
    {"nccl-xml/oci_H100-topology.xml", 8, 16, 144, 4, {"nccl-flattens", "slow-bridge"}},
    {"nccl-xml/azure_ndv5-topo.xml", 8, 8, 0, 0, {"pci-only", "nic-speed-missing"}},
    {"nccl-xml/azure_ndv4-topo.xml", 8, 8, 0, 0, {"pci-only", "nic-speed-missing"}},
    {"nccl-xml/azure_ncv4-topo.xml", 4, 1, 48, 0, {"nvlink-to-itself", "pcie-speed-unknown", "nic-far"}},
    {"nccl-xml/oci_topo-flattened.xml", 8, 8, 0, 0, {"pci-only", "nic-speed-missing"}},
    {"nccl-xml/aws_p4d-24xl-topo.xml", 8, 4, 0, 0, {"pci-only", "nic-shared"}},
    {"nccl-xml/aws_g5.48xl-topo.xml", 0, 0, 0, 0, {"unknown-device", "no-gpus", "cpu-unknown"}},
    {"nccl-xml/rccl_topo_8p_940.xml", 8, 8, 56, 0, {"xgmi-rate-unknown"}},
    {"nccl-xml/rccl_topo_8p_rome_4nics.xml", 8, 4, 24, 0, {"xgmi-rate-unknown", "nic-shared"}},
    {"nccl-xml/gb10_spark_nccl_pr2202.xml", 1, 2, 0, 0, {"gpudirect-off", "pcie-generation-1"}},
    {"nccl-xml/FRAGMENT_h200_supermicro_numa0_ncclTests256.xml", 3, 3, 54, 4, {"partial-host"}},
    {"nccl-xml/FRAGMENT_h200_vm_flat_ncclTests256.xml", 1, 1, 18, 0, {"nvswitch-hidden"}},
    {"nccl-xml/FRAGMENT_aws_p5_48xl_autogen_nccl2.30.xml", 1, 1, 18, 4, {"slow-bridge"}},
};

std::string text_of(const std::string& name) {
  std::ifstream file(data_folder() / "topologies" / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

Block block_of(const std::string& name) { return read_nccl_xml(text_of(name), name).topology.types.at(0); }

/// NVLink ends on the GPUs' side, those that lead nowhere included: "target*count*class ...".
std::uint64_t nvlink_ends(const Block& block) {
  std::uint64_t ends = 0;
  for (const BlockWire& wire : block.wires)
    if (wire.kind == WireKind::nvlink && block.vertices[wire.from].kind == VertexKind::gpu)
      ends += wire.wires;
  for (const BlockVertex& vertex : block.vertices) {
    const auto unused = vertex.attributes.find("nvlink.unused");
    if (unused != vertex.attributes.end())
      ends += std::stoul(unused->second.substr(unused->second.find('*') + 1));
  }
  return ends;
}

class PublishedTopologies : public ::testing::TestWithParam<Expected> {};

TEST_P(PublishedTopologies, hold_the_stated_counts_and_findings_and_survive_export) {
  const Expected& expected = GetParam();
  const std::string text = text_of(expected.file);
  if (text.empty()) GTEST_SKIP() << "no published topologies";
  const ImportedTopology imported = read_nccl_xml(text, expected.file);
  const Block& block = imported.topology.types.at(0);
  EXPECT_EQ(block.gpus.size(), expected.gpus);
  EXPECT_EQ(block.nics.size(), expected.nics);
  EXPECT_EQ(nvlink_ends(block), expected.nvlinks);
  const auto visible = [](const BlockVertex& vertex) {
    return vertex.kind == VertexKind::nvswitch && vertex.label != "chips not visible";
  };
  EXPECT_EQ(std::ranges::count_if(block.vertices, visible), expected.chips);
  std::vector<std::string> codes;
  for (const Finding& finding : imported.findings) codes.push_back(finding.code);
  for (const std::string& code : expected.findings) EXPECT_THAT(codes, ::testing::Contains(code));
  const std::string written = to_nccl_xml(imported.topology);
  EXPECT_EQ(read_nccl_xml(written, "other.xml").topology, imported.topology);
  EXPECT_EQ(to_nccl_xml(read_nccl_xml(written, "other.xml").topology), written);
}

INSTANTIATE_TEST_SUITE_P(Files, PublishedTopologies, ::testing::ValuesIn(expectations), [](const auto& test) {
  std::string name = test.param.file.substr(test.param.file.find('/') + 1);
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
});

TEST(PublishedTopology, chips_of_hopper_boards_get_4_5_5_4_links) {
  if (text_of("h200x2-vm-topo.xml").empty()) GTEST_SKIP() << "no published topologies";
  for (const char* name :
       {"ibmcloud_gx3d_h100x8.xml", "oci_H100-topology.xml",
        "FRAGMENT_h200_supermicro_numa0_ncclTests256.xml", "FRAGMENT_aws_p5_48xl_autogen_nccl2.30.xml"}) {
    const Block block = block_of(std::string("nccl-xml/") + name);
    std::vector<std::uint32_t> links;
    for (const BlockWire& wire : block.wires)
      if (wire.kind == WireKind::nvlink && wire.from == block.gpus[0].vertex) links.push_back(wire.wires);
    EXPECT_THAT(links, ::testing::ElementsAre(4, 5, 5, 4)) << name;
  }
}

TEST(PublishedTopology, oci_has_eight_cards_of_two_ports) {
  if (text_of("nccl-xml/oci_H100-topology.xml").empty()) GTEST_SKIP() << "no published topologies";
  const Block block = block_of("nccl-xml/oci_H100-topology.xml");
  for (std::size_t i = 0; i < block.nics.size(); ++i) {
    EXPECT_EQ(block.nics[i].card, i / 2);
    EXPECT_EQ(block.nics[i].rate, gigabytes_per_second(22.5));
  }
  EXPECT_EQ(block.vertices[block.nics[2].vertex].label, "mlx5_3");
}

TEST(PublishedTopology, the_rates_of_the_virtual_h200_host_are_nominal) {
  if (text_of("h200x2-vm-topo.xml").empty()) GTEST_SKIP() << "no published topologies";
  const Block block = block_of("h200x2-vm-topo.xml");
  for (const BlockWire& wire : block.wires) {
    if (wire.from != block.gpus[0].vertex) continue;
    const double rate = wire.kind == WireKind::nvlink ? 450 : 63;
    EXPECT_EQ(wire.rate, gigabytes_per_second(rate));
  }
}

}  // namespace
}  // namespace isthmus::published_topologies_test
