#include "model/topology/nccl_graph.hpp"

#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/support/published_data.hpp"

namespace isthmus::nccl_graph_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string graph(const std::string& attributes, const std::string& channels = "") {
  return fmt::format(
      "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" {} typeintra=\"NVL\" "
      "typeinter=\"PIX\">{}</graph></graphs>",
      attributes, channels);
}

std::vector<std::string> codes(const std::string& text) {
  std::vector<std::string> found;
  for (const Finding& finding : read_nccl_graph(text, "g.xml").findings) found.push_back(finding.code);
  return found;
}

std::string message(const std::string& text) {
  try {
    read_nccl_graph(text, "g.xml");
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

NcclGraphFile published(const std::string& name) {
  std::ifstream file(data_folder() / "topologies" / name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.empty() ? NcclGraphFile() : read_nccl_graph(text, name);
}

TEST(NcclGraph, devices_are_hexadecimal_whatever_they_look_like) {
  const auto file =
      read_nccl_graph(graph("nchannels='1'",
                            "<channel><net dev='10'/><gpu dev='10' rank='10'/><gpu dev='0x100000000000011'/>"
                            "<net dev='0xa'/></channel>"),
                      "g.xml");
  const auto& stops = file.graphs.at(0).channels.at(0);
  ASSERT_EQ(stops.size(), 4U);
  EXPECT_TRUE(stops[0].net);
  EXPECT_EQ(stops[0].dev, 16U);
  EXPECT_EQ(stops[1].dev, 16U);
  EXPECT_EQ(stops[1].rank, 10);
  EXPECT_EQ(stops[2].host, 1U);
  EXPECT_EQ(stops[2].dev, 17U);
  EXPECT_EQ(stops[2].rank, std::nullopt);
  EXPECT_THAT(file.findings, IsEmpty());
}

TEST(NcclGraph, counts_that_disagree_are_findings) {
  const std::string channel = "<channel><gpu dev='0'/><gpu dev='1'/></channel>";
  EXPECT_THAT(codes(graph("nchannels='2'", channel + channel)), IsEmpty());
  EXPECT_THAT(codes(graph("nchannels='3'", channel + channel)), ::testing::ElementsAre("channel-count"));
  EXPECT_THAT(codes(graph("", channel)), ::testing::ElementsAre("no-channel-count"));
}

TEST(NcclGraph, a_ring_visits_every_gpu_once) {
  const std::string good = "<channel><gpu dev='0'/><gpu dev='1'/></channel>";
  EXPECT_THAT(codes(graph("nchannels='1'", "<channel><gpu dev='0'/><gpu dev='0'/></channel>")),
              ::testing::ElementsAre("gpu-twice"));
  EXPECT_THAT(codes(graph("nchannels='2'", good + "<channel><gpu dev='1'/></channel>")),
              ::testing::ElementsAre("ring-incomplete"));
  EXPECT_THAT(codes(graph("nchannels='1'", "<channel><net dev='0'/><gpu dev='0'/></channel>")),
              ::testing::ElementsAre("net-one-sided"));
  EXPECT_THAT(codes(graph("nchannels='1'", "<channel><gpu dev='0'/><net dev='0'/><gpu dev='1'/></channel>")),
              ::testing::Contains("net-inside"));
}

TEST(NcclGraph, a_graph_without_channels_is_not_available) {
  EXPECT_THAT(codes(graph("nchannels='0'")), IsEmpty());
}

TEST(NcclGraph, c2c_is_no_path_kind_of_these_files) {
  EXPECT_THAT(codes("<graphs version='1'><graph id='0' pattern='4' nchannels='0' typeintra='C2C' "
                    "typeinter='PIX'/></graphs>"),
              ::testing::ElementsAre("path-kind-unknown"));
}

TEST(NcclGraph, what_cannot_be_read_is_refused_with_line_and_attribute) {
  EXPECT_THAT(message("<system version='1'/>"), HasSubstr("root element is graphs"));
  EXPECT_THAT(message("<graphs version='2'/>"), HasSubstr("g.xml:1: graphs.version"));
  EXPECT_THAT(message("<graphs><graph id='5'/></graphs>"), HasSubstr("graph.id"));
  EXPECT_THAT(message("<graphs><graph id='0'/>\n<graph id='0'/></graphs>"), HasSubstr("g.xml:2: graph.id"));
  EXPECT_THAT(message(graph("speedintra='12,5'")), HasSubstr("g.xml:2: graph.speedintra: found '12,5'"));
  EXPECT_THAT(message(graph("speedintra='1e2'")), HasSubstr("graph.speedintra"));
  EXPECT_THAT(message(graph("nchannels='1'", "<channel>\n<gpu dev='1g'/></channel>")),
              HasSubstr("g.xml:3: gpu.dev"));
  EXPECT_THAT(message(graph("nchannels='1'", "<channel><gpu/></channel>")), HasSubstr("gpu.dev"));
  EXPECT_EQ(message(graph("speedintra='12.5'", "<channel><gpu dev='1f'/></channel>")), "accepted");
}

TEST(NcclGraph, published_files_hold_what_their_origin_says) {
  const NcclGraphFile h200 = published("h200x2-vm-graph.xml");
  if (h200.graphs.empty()) GTEST_SKIP() << "no published topologies";
  ASSERT_EQ(h200.graphs.size(), 5U);
  EXPECT_EQ(h200.graphs[0].channels.size(), 12U);
  EXPECT_EQ(h200.graphs[0].speed_intra, 30);
  EXPECT_EQ(h200.graphs[1].id, 1);
  EXPECT_EQ(h200.graphs[1].pattern, 1);
  EXPECT_EQ(h200.graphs[1].speed_intra, 60);
  for (const std::size_t i : {2U, 3U, 4U}) EXPECT_TRUE(h200.graphs[i].channels.empty());
  EXPECT_EQ(h200.graphs[2].id, 4);
  EXPECT_THAT(h200.findings, IsEmpty());
  const NcclGraphFile azure = published("nccl-graph/azure_ncv4-graph.xml");
  ASSERT_EQ(azure.graphs.size(), 3U);
  EXPECT_EQ(azure.graphs[0].channels.size(), 2U);
  EXPECT_EQ(azure.graphs[2].pattern, 3);
  EXPECT_EQ(azure.graphs[2].channels.size(), 4U);
  EXPECT_EQ(azure.graphs[0].type_intra, "SYS");
  EXPECT_THAT(azure.findings, IsEmpty());
}

}  // namespace
}  // namespace isthmus::nccl_graph_test
