#include "model/topology/topology_faults.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "tests/support/topology_generator.hpp"

namespace isthmus::topology_faults_test {
namespace {

RC_GTEST_PROP(TopologyFaults, are_none_in_generated_topologies, ()) {
  const Topology topology = *arbitrary_topology();
  const std::vector<InputFault> faults = topology_faults(topology);
  RC_ASSERT(faults.empty());
}

struct Planted {
  std::string key;  // of the only fault that `change` makes of the healthy topology
  std::function<void(Topology&)> change;
  std::function<void(Topology&)> twin;  // next to it, and allowed
};

Block& block(Topology& topology) { return topology.types[0]; }

// 4 hosts of 4 GPUs: vertices 0-3 GPUs, 4-5 chips, 6-9 PCIe switches, 10 CPU, 11-14 NICs.
std::vector<Planted> planted_in_blocks() {
  return {
      {"types.0.name", [](auto& t) { block(t).name = "a\nb"; }, [](auto& t) { block(t).name = ""; }},
      {"types.0.vertices.10.host", [](auto& t) { block(t).vertices[10].host.reset(); },
       [](auto& t) { block(t).vertices[4].host.reset(); }},
      {"types.0.vertices.2.index", [](auto& t) { block(t).vertices[2].index = 1; },
       [](auto& t) { block(t).vertices[2].index = 7; }},
      {"types.0.vertices.2.label", [](auto& t) { block(t).vertices[2].label = std::string(5000, 'x'); },
       [](auto& t) { block(t).vertices[2].label = std::string(4096, 'x'); }},
      {"types.0.vertices.2.attributes", [](auto& t) { block(t).vertices[2].attributes[""] = "x"; },
       [](auto& t) { block(t).vertices[2].attributes["x"] = ""; }},
      {"types.0.wires.0.wires", [](auto& t) { block(t).wires[1].wires = 8; },
       [](auto& t) { block(t).wires[0].wires = block(t).wires[1].wires = 8; }},
      {"types.0.wires.0.rate", [](auto& t) { block(t).wires[0].rate = {-1}; },
       [](auto& t) { block(t).wires[0].rate = {0}; }},
      {"types.0.wires.0.rate", [](auto& t) { block(t).wires[0].rate = {10'000'000'000'001}; },
       [](auto& t) { block(t).wires[0].rate = {10'000'000'000'000}; }},
      {"types.0.gpus", [](auto& t) { block(t).gpus.pop_back(); }, [](auto&) {}},
      {"types.0.gpus.1.vertex", [](auto& t) { block(t).gpus[1].vertex = 4; }, [](auto&) {}},
      {"types.0.gpus.1.nic", [](auto& t) { block(t).gpus[1].nic = 4; },
       [](auto& t) { block(t).gpus[1].nic = 3; }},
      {"types.0.gpus.1.partition", [](auto& t) { block(t).gpus[1].partition = 65536; },
       [](auto& t) { block(t).gpus[1].partition = 65535; }},
      {"types.0.nics.3.rail", [](auto& t) { block(t).nics[3].rail = 65536; },
       [](auto& t) { block(t).nics[3].rail = 0; }},
      {"types.0.nics.3.rate", [](auto& t) { block(t).nics[3].rate = {-5}; },
       [](auto& t) { block(t).nics[3].rate = {5}; }},
  };
}

std::vector<Planted> planted_in_network() {
  return {
      {"blocks.4", [](auto& t) { t.blocks.push_back(1); },
       [](auto& t) {
         t.types.push_back({"empty"});
         t.blocks.push_back(1);
       }},
      {"gpus_known", [](auto& t) { t.gpus_known = false; }, [](auto&) {}},
      {"network.switches.0.name", [](auto& t) { t.network.switches[0].name = "\x01"; },
       [](auto& t) { t.network.switches[0].name = ""; }},
      {"network.cables.0.low", [](auto& t) { t.network.cables[0].low = 6; },
       [](auto& t) { t.network.cables[0].low = 3; }},
      {"network.cables.0.high", [](auto& t) { t.network.cables[0].high = 2; },
       [](auto& t) { t.network.cables[0].high = 5; }},
      {"network.cables.0.wires", [](auto& t) { t.network.cables[0].wires = 0; },
       [](auto& t) { t.network.cables[0].wires = 65536; }},
      {"network.cables.0.wire", [](auto& t) { t.network.cables[0].wire = {-1}; },
       [](auto& t) { t.network.cables[0].wire = {0}; }},
      {"switch_of_nic", [](auto& t) { t.switch_of_nic.pop_back(); }, [](auto&) {}},
      {"switch_of_nic.3", [](auto& t) { t.switch_of_nic[3] = 6; },
       [](auto& t) { t.switch_of_nic[3] = no_switch; }},
      {"routing.seed", [](auto& t) { t.routing.seed = std::uint64_t{1} << 63; },
       [](auto& t) { t.routing.seed = (std::uint64_t{1} << 63) - 1; }},
  };
}

void judge(const std::vector<Planted>& all) {
  for (const Planted& planted : all) {
    Topology topology = healthy_topology();
    planted.change(topology);
    const std::vector<InputFault> faults = topology_faults(topology);
    ASSERT_EQ(faults.size(), 1u) << planted.key;
    EXPECT_EQ(faults[0].where.key, planted.key);
    EXPECT_FALSE(faults[0].found.empty() || faults[0].allowed.empty() || faults[0].change.empty());
    Topology twin = healthy_topology();
    planted.twin(twin);
    EXPECT_TRUE(topology_faults(twin).empty()) << planted.key << ": " << topology_faults(twin)[0].found;
  }
}

TEST(TopologyFaults, planted_in_a_block_are_named_and_their_twins_pass) { judge(planted_in_blocks()); }
TEST(TopologyFaults, planted_in_the_network_are_named_and_their_twins_pass) { judge(planted_in_network()); }

TEST(TopologyFaults, of_wires_name_the_end_at_fault) {
  using ::testing::Contains;
  using ::testing::Field;
  const auto key_at = [](const char* key) {
    return Contains(Field(&InputFault::where, Field(&Location::key, key)));
  };
  Topology topology = healthy_topology();
  block(topology).wires[0].to = 15;
  EXPECT_THAT(topology_faults(topology), key_at("types.0.wires.0.to"));
  topology = healthy_topology();
  block(topology).wires[0].to = block(topology).wires[0].from;
  EXPECT_THAT(topology_faults(topology), key_at("types.0.wires.0.to"));
  topology = healthy_topology();
  block(topology).wires[0].kind = block(topology).wires[1].kind = WireKind::socket;
  EXPECT_THAT(topology_faults(topology), key_at("types.0.wires.0.kind"));
  EXPECT_THAT(topology_faults(topology), key_at("types.0.wires.1.kind"));
}

/// NIC choices are those of the GPU's own host.
TEST(TopologyFaults, name_a_nic_choice_on_another_host) {
  Topology topology;
  Block both{"pair", 2};
  for (std::uint32_t host = 0; host < 2; ++host) both.vertices.push_back({VertexKind::gpu, host, 0});
  for (std::uint32_t host = 0; host < 2; ++host) both.vertices.push_back({VertexKind::nic, host, 0});
  both.gpus = {{0, 0, true, std::nullopt}, {1, 0, true, std::nullopt}};
  both.nics = {{2, 0, 0, {}}, {3, 0, 0, {}}};
  both.gpus[0].nic = 0;
  topology.types = {both};
  EXPECT_TRUE(topology_faults(topology).empty());
  topology.types[0].gpus[0].nic = 1;
  ASSERT_EQ(topology_faults(topology).size(), 1u);
  EXPECT_EQ(topology_faults(topology)[0].where.key, "types.0.gpus.0.nic");
}

TEST(TopologyFaults, of_too_many_parts_are_named_by_what_there_are_too_many_of) {
  Topology topology;
  topology.types = {Block{"hosts", 1 << 14}};
  topology.blocks.assign(64, 0);
  EXPECT_TRUE(topology_faults(topology).empty());
  topology.blocks.push_back(0);
  ASSERT_EQ(topology_faults(topology).size(), 1u);
  EXPECT_EQ(topology_faults(topology)[0].where.key, "hosts");
}

TEST(TopologyFaults, are_listed_up_to_a_limit_whatever_the_value_holds) {
  Topology topology = healthy_topology();
  topology.blocks.assign(5000, 77);
  topology.network.switches[0].tier = static_cast<VertexKind>(200);
  block(topology).vertices[0].kind = static_cast<VertexKind>(200);
  block(topology).wires[0].kind = static_cast<WireKind>(200);
  block(topology).wires[2].evidence = static_cast<Evidence>(200);
  EXPECT_EQ(topology_faults(topology).size(), max_topology_faults);
}

}  // namespace
}  // namespace isthmus::topology_faults_test
