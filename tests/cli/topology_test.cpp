// isthmus topology, as its users run it.

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>

#include "model/topology/topology_json.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/made_sysfs.hpp"
#include "tests/support/topology_generator.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class TopologyCommand : public ProgramTest {
 protected:
  std::string write(const std::string& name, const Topology& topology) const {
    return folder_.write(name, to_json(topology)).string();
  }
};

TEST_F(TopologyCommand, show_prints_the_counts_of_a_preset) {
  const ProgramResult result = run("topology show dgx-h100-superpod:4 --json");
  ASSERT_EQ(result.status, 0) << result.errors;
  const nlohmann::json document = nlohmann::json::parse(result.output);
  EXPECT_EQ(document["hosts"], 4);
  EXPECT_EQ(document["gpus"], 32);
  EXPECT_EQ(document["nics"], 32);
  EXPECT_EQ(document["nvlink_domains"], 4);
  EXPECT_EQ(document["nvlinks"], 4 * 144);
  EXPECT_TRUE(document["findings"].is_array());
}

TEST_F(TopologyCommand, show_says_null_and_unknown_where_the_source_says_nothing) {
  Topology topology;
  topology.name = "switches only";
  topology.gpus_known = false;
  topology.types = {Block{"host"}};
  topology.blocks = {0, 0};
  const std::string file = write("t.json", topology);
  const nlohmann::json document = nlohmann::json::parse(run("topology show --json " + file).output);
  for (const char* key : {"gpus", "nvlinks", "nvlink_domains", "bisection_bytes_per_second"})
    EXPECT_TRUE(document[key].is_null()) << key;
  EXPECT_EQ(document["findings"][0]["code"], "network-unknown");
  EXPECT_THAT(run("topology show " + file).output, HasSubstr("2 hosts, unknown GPUs, 0 NICs"));
}

TEST_F(TopologyCommand, show_gives_rates_and_findings_as_text) {
  Topology topology = healthy_topology();
  topology.name = "lab";
  topology.types[0].gpus[2].gpudirect = false;
  const ProgramResult result = run("topology show " + write("t.json", topology));
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, HasSubstr("lab: 4 hosts, 16 GPUs, 16 NICs, 4 NVLink domains, 288 NVLinks"));
  EXPECT_THAT(result.output, HasSubstr("450 GB/s (16 GPUs)"));
  EXPECT_THAT(result.output, HasSubstr("4 leaf, 2 spine"));
  EXPECT_THAT(result.output, HasSubstr("bisection         400 GB/s"));
  EXPECT_THAT(result.output, HasSubstr("gpudirect-off: GPUDirect is off for GPU 2 on host 0"));
}

TEST_F(TopologyCommand, show_takes_the_fabric_of_a_scenario) {
  const ProgramResult result =
      run("topology show --json " + (project_folder() / "scenarios/deepseek-v3-h100.yaml").string());
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(nlohmann::json::parse(result.output)["hosts"], 64);
}

TEST_F(TopologyCommand, probe_shows_a_machine_with_gpus_from_its_folders) {
  test::MadeMachine made;
  made.nodes = {{{test::MadeKind::gpu}, {test::MadeKind::rdma_nic}}, {{test::MadeKind::gpu}}};
  test::write_sysfs(made, folder_.path() / "root");
  const std::string from = "--probe --root '" + (folder_.path() / "root").string() + "'";
  const ProgramResult result = run("topology show --json " + from);
  ASSERT_EQ(result.status, 0) << result.errors;
  const nlohmann::json document = nlohmann::json::parse(result.output);
  EXPECT_EQ(document["name"], "made");
  EXPECT_EQ(document["gpus"], 2);
  EXPECT_EQ(document["nics"], 1);
  EXPECT_EQ(document["machine"]["processor"], "Made CPU");
  EXPECT_EQ(document["machine"]["nodes"].size(), 2U);
  EXPECT_EQ(document["machine"]["gpus"][1]["node"], 1);
  EXPECT_TRUE(document["machine"]["gpus"][1]["nvlinks"].is_null());
  EXPECT_EQ(document["machine"]["nics"][0]["megabits_per_second"], 400'000);
  EXPECT_THAT(run("topology show " + from).output,
              HasSubstr("mlx5_0 0000:02:00.0, NUMA node 0, RDMA, 400 Gb/s"));
  const std::string file = (folder_.path() / "made.json").string();
  ASSERT_EQ(run("topology convert --to json -o " + file + " " + from).status, 0);
  const nlohmann::json again = nlohmann::json::parse(run("topology show --json " + file).output);
  for (const char* key : {"name", "hosts", "gpus", "nics", "host_per_gpu", "nic_per_gpu", "types"})
    EXPECT_EQ(again[key], document[key]) << key;
}

TEST_F(TopologyCommand, probe_shows_this_machine) {
  const ProgramResult text = run("topology show --probe");
  EXPECT_EQ(text.status, 0) << text.errors;
  for (const char* part : {"processors  ", "NUMA nodes  ", "GPUs  ", "NICs  "})
    EXPECT_THAT(text.output, HasSubstr(part));
  const ProgramResult result = run("topology show --probe --json");
  ASSERT_EQ(result.status, 0) << result.errors;
  const nlohmann::json document = nlohmann::json::parse(result.output);
  EXPECT_EQ(document["gpus"], document["machine"]["gpus"].size());
  EXPECT_EQ(document["nics"], document["machine"]["nics"].size());
  EXPECT_EQ(document["hosts"], 1);
}

TEST_F(TopologyCommand, probe_stands_in_place_of_a_source) {
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"show --probe dgx-h100-superpod", "--probe: found 'dgx-h100-superpod' beside it"},
           {"show", "topology: found none"},
           {"convert --to json -o -", "topology: found none"},
           {"show dgx-h100-superpod --root /tmp", "--root: found no --probe beside it"},
           {"show --probe --root /no-such-folder",
            "--root: found '/no-such-folder', which has no folder sys"}}) {
    const ProgramResult result = run("topology " + arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.errors, HasSubstr(part)) << arguments;
    EXPECT_THAT(result.output, ::testing::IsEmpty()) << arguments;
  }
}

TEST_F(TopologyCommand, show_prints_the_channels_of_a_graph_file) {
  const auto file = folder_.write("graph.xml", R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="20" latencyinter="0" )"
                                               R"(typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel>
      <gpu dev="0"/>
      <gpu dev="1"/>
    </channel>
  </graph>
</graphs>
)");
  const ProgramResult result = run("topology show --json " + file.string());
  ASSERT_EQ(result.status, 0) << result.errors;
  const nlohmann::json document = nlohmann::json::parse(result.output);
  EXPECT_EQ(document["gpus"], 2);
  EXPECT_TRUE(document["nvlinks"].is_null());
  EXPECT_EQ(document["graphs"][0]["channel_count"], 1);
  EXPECT_THAT(run("topology show " + file.string()).output, HasSubstr("ring: 1 channels"));
}

TEST_F(TopologyCommand, convert_to_json_and_back_is_the_same_machine) {
  const std::string file = (folder_.path() / "out.json").string();
  ASSERT_EQ(run("topology convert dgx-h100-superpod:3 --to json -o " + file).status, 0);
  EXPECT_EQ(run("topology diff dgx-h100-superpod:3 " + file).status, 0);
  const ProgramResult again = run("topology convert " + file + " --to json -o -");
  EXPECT_EQ(again.output, read_file(file));
}

TEST_F(TopologyCommand, convert_draws_and_writes_nccls_form) {
  EXPECT_THAT(run("topology convert dgx-h100 --to dot -o -").output, ::testing::StartsWith("graph \""));
  EXPECT_THAT(run("topology convert dgx-h100 --to xml -o -").output, ::testing::StartsWith("<system"));
}

TEST_F(TopologyCommand, convert_leaves_the_old_file_and_no_other_when_it_fails) {
  const auto old = folder_.write("old.json", "old");
  const std::size_t before =
      static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  EXPECT_EQ(run("topology convert dgx-h100 --to svg -o " + old.string()).status, 2);
  EXPECT_EQ(run("topology convert missing.xml --to json -o " + old.string()).status, 2);
  EXPECT_EQ(run("topology convert dgx-h100 --to json -o " + folder_.path().string()).status, 2);
  EXPECT_EQ(run("topology convert dgx-h100 --to json -o " + (folder_.path() / "no/such/x").string()).status,
            3);
  EXPECT_EQ(read_file(old), "old");
  const std::size_t after =
      static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  EXPECT_LE(after, before + 1);  // standard error of the runs
}

TEST_F(TopologyCommand, diff_ends_with_one_where_machines_differ) {
  Topology topology = healthy_topology();
  const std::string first = write("a.json", topology);
  topology.types[0].wires[0].wires = topology.types[0].wires[1].wires = 8;
  topology.name = "another name";
  const std::string second = write("b.json", topology);
  EXPECT_EQ(run("topology diff " + first + " " + first).status, 0);
  const ProgramResult text = run("topology diff " + first + " " + second);
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.output, HasSubstr("NVLink between GPU 0 on host 0 and NVSwitch chip 0 on host 0"));
  const ProgramResult json = run("topology diff --json " + first + " " + second);
  EXPECT_EQ(json.status, 1);
  const nlohmann::json document = nlohmann::json::parse(json.output);
  EXPECT_EQ(document["equal"], false);
  EXPECT_EQ(document["differences"].size(), 1u);
  EXPECT_EQ(document["differences"][0]["code"], "wire");
}

TEST_F(TopologyCommand, bad_sources_end_with_two_and_say_what_would_do) {
  const ProgramResult missing = run("topology show dgx-h100-superpot:4");
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.errors, HasSubstr("dgx-h100-superpod"));
  EXPECT_EQ(missing.output, "");
  for (const char* hosts : {"dgx-h100:", "dgx-h100:x", "dgx-h100:4x", "dgx-h100:0", "dgx-h100:99999999999"})
    EXPECT_EQ(run(std::string("topology show ") + hosts).status, 2) << hosts;
  const auto bad = folder_.write("bad.json", "{\n\"isthmus_topology\": 1\n}");
  const ProgramResult broken = run("topology show " + bad.string());
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.errors, HasSubstr("bad.json:1: gpus_known"));
  EXPECT_EQ(run("topology").status, 2);
  EXPECT_EQ(run("topology show").status, 2);
  EXPECT_EQ(run("topology convert dgx-h100 --to json").status, 2);
}

}  // namespace
}  // namespace isthmus
