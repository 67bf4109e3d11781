#include "model/topology/topology_json.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/topology_generator.hpp"

namespace isthmus {
namespace {

RC_GTEST_PROP(TopologyJson, holds_everything, ()) {
  const Topology topology = *arbitrary_topology();
  const std::string text = to_json(topology);
  RC_ASSERT(topology_from_json(text, "t.json") == topology);
  RC_ASSERT(to_json(topology_from_json(text, "t.json")) == text);
}

/// A second parser, so that the writer is not judged by its own reader alone.
TEST(TopologyJson, is_json_with_the_numbers_in_their_places) {
  const nlohmann::json document = nlohmann::json::parse(to_json(healthy_topology()));
  EXPECT_EQ(document["types"][0]["vertices"].size(), 15u);
  EXPECT_EQ(document["types"][0]["wires"][0],
            nlohmann::json::parse(R"({"between": [0, 4], "kind": "nvlink", "wires": 9,
                                      "rate": 225000000000, "evidence": "vendor"})"));
  EXPECT_EQ(document["blocks"], nlohmann::json::parse(R"([{"type": 0, "times": 4}])"));
  EXPECT_EQ(document["switch_of_nic"], nlohmann::json::parse(R"([{"switches": [0, 1, 2, 3], "times": 4}])"));
}

TEST(TopologyJson, of_the_document_is_read_and_written_again) {
  std::ifstream stream(project_folder() / "docs/topology-json.md");
  const std::string document{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t begin = document.find("```json\n") + 8;
  const std::string example = document.substr(begin, document.find("```", begin) - begin);
  EXPECT_EQ(to_json(topology_from_json(example, "docs/topology-json.md")), example);
}

TEST(TopologyJson, keeps_runs_of_equal_hosts_compact) {
  EXPECT_LT(to_json(healthy_topology(16'384)).size(), to_json(healthy_topology(4)).size() + 200);
}

TEST(TopologyJson, numbers_its_longest_seed_and_an_unplugged_nic) {
  Topology topology = healthy_topology();
  topology.routing.seed = 0x7FFF'FFFF'FFFF'FFFF;
  topology.switch_of_nic[5] = no_switch;
  EXPECT_EQ(topology_from_json(to_json(topology), "t.json"), topology);
}

struct BadText {
  std::string from, to;  // replaced in the healthy topology's text
  std::string key, words;
};

TEST(TopologyJson, bad_values_are_named_by_line_and_key) {
  const std::vector<BadText> all{
      {"\"isthmus_topology\": 1", "\"isthmus_topology\": 2", "isthmus_topology", "found 2"},
      {"\"pxn\": false", "\"pxn\": 0", "routing.pxn", "true or false"},
      {"\"kind\": \"gpu\"", "\"kind\": \"GPU\"", "types.0.vertices.0.kind", "pcie-switch"},
      {"\"between\": [0, 4]", "\"between\": [0]", "types.0.wires.0.between", "two numbers"},
      {"\"between\": [0, 4]", "\"from\": 0", "types.0.wires.0.to", "required"},
      {"\"between\": [0, 4]", "\"between\": [0, 4], \"from\": 0", "types.0.wires.0", "one of them"},
      {"\"between\": [0, 4]", "\"from\": 0, \"to\": 4", "types.0.wires.0.wires", "as many wires back"},
      {"\"between\": [0, 4]", "\"between\": [0, 400]", "types.0.wires.0.to", "below 15"},
      {"\"rate\": 225000000000", "\"rate\": 2.5e11", "types.0.wires.0.rate", "whole number"},
      {"\"evidence\": \"vendor\"", "\"evidence\": \"rumour\"", "types.0.wires.0.evidence", "published"},
      {"\"times\": 4", "\"times\": 0", "blocks.0.times", "found 0"},
      {"\"times\": 4", "\"times\": 5", "switch_of_nic", "20, one for each NIC"},
      {"\"low\": 0", "\"low\": 4", "network.cables.0.high", "higher tier"},
      {"\"switches\": [0, 1", "\"switches\": [0, 9", "switch_of_nic.1", "below 6"},
      {"\"gpudirect\"", "\"gpu_direct\"", "types.0.gpus.0.gpu_direct", "gpudirect"},
  };
  for (const BadText& bad : all) {
    std::string text = to_json(healthy_topology());
    const std::size_t at = text.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    text.replace(at, bad.from.size(), bad.to);
    try {
      topology_from_json(text, "t.json");
      ADD_FAILURE() << bad.to << " was accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(error.where().file, "t.json");
      EXPECT_THAT(error.where().key, ::testing::StartsWith(bad.key)) << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr(bad.words));
      EXPECT_GT(error.where().line, 0) << error.what();
    }
  }
}

TEST(TopologyJson, faults_of_the_whole_carry_the_line_of_their_part) {
  std::string text = to_json(healthy_topology());
  const std::size_t at = text.find("\"between\": [2, 5]");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  text.replace(at, 17, "\"between\": [2, 2]");
  try {
    topology_from_json(text, "t.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().line, line) << error.what();
  }
}

}  // namespace
}  // namespace isthmus
