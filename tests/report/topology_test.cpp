#include "report/topology.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/topology_generator.hpp"

namespace isthmus::report {
namespace {

TEST(TopologyDocument, tells_no_code_twice_that_the_reader_told) {
  ImportedTopology imported{healthy_topology(),
                            {{"gpudirect-off", "GPU 2 (0000:1b:00.0): GPUDirect is off"}}};
  imported.topology.types[0].gpus[2].gpudirect = false;
  imported.topology.switch_of_nic[9] = no_switch;
  const nlohmann::json findings = nlohmann::json::parse(topology_document(imported, true))["findings"];
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0]["text"], "GPU 2 (0000:1b:00.0): GPUDirect is off");
  EXPECT_EQ(findings[1]["code"], "nic-not-cabled");
}

TEST(TopologyDocument, has_every_number_of_the_text_in_its_json) {
  const nlohmann::json document = nlohmann::json::parse(topology_document({healthy_topology(), {}}, true));
  EXPECT_EQ(document["nvlink_per_gpu"],
            nlohmann::json::parse(R"([{"bytes_per_second": 450000000000, "gpus": 16}])"));
  EXPECT_EQ(document["switches"],
            nlohmann::json::parse(R"({"leaf": 4, "spine": 2, "core": 0, "gateway": 0})"));
  EXPECT_EQ(document["leaf_oversubscription"], nlohmann::json::parse(R"([{"ratio": 0.5, "leaves": 4}])"));
  EXPECT_EQ(document["bisection_bytes_per_second"], 400'000'000'000);
  EXPECT_EQ(document["types"][0]["times"], 4);
}

TEST(DifferenceDocument, says_that_equal_machines_are_equal) {
  EXPECT_EQ(difference_document("a", "b", {}, false), "a and b are the same machine\n");
  const nlohmann::json document = nlohmann::json::parse(difference_document("a", "b", {{"wire", "x"}}, true));
  EXPECT_EQ(document["equal"], false);
  EXPECT_EQ(document["differences"][0], nlohmann::json::parse(R"({"code": "wire", "text": "x"})"));
}

TEST(NcclGraphDocument, lists_the_stops_of_each_channel) {
  NcclGraph ring;
  ring.type_intra = "NVL";
  ring.channels = {{{true, 0, 2, std::nullopt}, {false, 0, 1, 5}, {true, 0, 2, std::nullopt}}};
  NcclGraph tree;
  tree.id = 1;
  const NcclGraphFile file{{ring, tree}, {}};
  const std::string text = nccl_graph_document("g.xml", file, false);
  EXPECT_THAT(text, ::testing::HasSubstr("0: NET2 1 NET2"));
  EXPECT_THAT(text, ::testing::HasSubstr("tree: not available"));
  const nlohmann::json document = nlohmann::json::parse(nccl_graph_document("g.xml", file, true));
  EXPECT_EQ(document["nics"], 1);
  EXPECT_EQ(document["graphs"][0]["channels"][0][1],
            nlohmann::json::parse(R"({"gpu": 1, "host": 0, "rank": 5})"));
}

}  // namespace
}  // namespace isthmus::report
