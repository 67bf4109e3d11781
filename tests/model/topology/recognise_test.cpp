#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/topology/importers.hpp"

namespace isthmus {
namespace {

using Format = TopologyFormat;

TEST(RecogniseTopology, goes_by_the_root_of_an_xml_behind_comments_and_declarations) {
  EXPECT_EQ(recognise_topology("<system version=\"1\">"), Format::nccl_xml);
  EXPECT_EQ(recognise_topology("\n\xEF\xBB\xBF<system>"), std::nullopt);
  EXPECT_EQ(recognise_topology("\xEF\xBB\xBF\n<?xml version=\"1.0\"?><!-- <graphs> -->\n<system/>"),
            Format::nccl_xml);
  EXPECT_EQ(recognise_topology("<graphs version=\"1\">"), Format::nccl_graph);
  EXPECT_EQ(recognise_topology("<pci busid=\"0\"/>"), std::nullopt);
  EXPECT_EQ(recognise_topology("<!-- <system>"), std::nullopt);
  EXPECT_EQ(recognise_topology("<systems>"), std::nullopt);
}

TEST(RecogniseTopology, goes_by_the_first_line_that_only_one_format_has) {
  EXPECT_EQ(recognise_topology("\n {\"name\": 1}"), Format::json);
  EXPECT_EQ(recognise_topology("\tGPU0\tGPU1\nGPU0\t X \tNV18\n"), Format::nvidia_smi);
  EXPECT_EQ(recognise_topology("$ nvidia-smi topo -m\n\x1b[4m\tGPU0\tCPU Affinity\x1b[0m\n"),
            Format::nvidia_smi);
  EXPECT_EQ(recognise_topology("# Topology file\n\nvendid=0x2c9\nswitchguid=0x1(1)\n"),
            Format::ibnetdiscover);
  EXPECT_EQ(recognise_topology("Ca\t1 \"H-1\"\t\t# \"h\"\n"), Format::ibnetdiscover);
  EXPECT_EQ(recognise_topology("a\nh:1:2 [0] NCCL INFO === System : maxBw 1.0 totalBw 1.0 ===\n"),
            Format::nccl_log);
}

TEST(RecogniseTopology, takes_nothing_else) {
  for (const char* text :
       {"", "\n", "GPU0", "GPU0\t X \tNV18\n", "GPU0 is warm", "GPU0: H100", "Switch off\n", "Cable \"S-1\"",
        "switches:\n  core:\n    switches:\n    - spine-1\n", "name: a\nfabric:\n  preset: dgx-h100\n"}) {
    EXPECT_EQ(recognise_topology(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(RecogniseTopology, takes_any_bytes, (const std::string& text)) {
  const std::optional<Format> format = recognise_topology(text);
  if (format) RC_ASSERT(!to_string(*format).empty());
}

}  // namespace
}  // namespace isthmus
