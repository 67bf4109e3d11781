#include "model/topology/difference.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "tests/support/topology_generator.hpp"
#include "tests/support/topology_relabelling.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

RC_GTEST_PROP(TopologyDifference, of_a_topology_and_itself_is_empty, ()) {
  const Topology topology = *arbitrary_topology();
  RC_ASSERT(topology_difference(topology, topology).empty());
}

/// Names, labels, evidence, the order of types, wires and cables; GPUs and NICs keep theirs.
RC_GTEST_PROP(TopologyDifference, does_not_see_how_a_topology_is_written, ()) {
  const Topology topology = *arbitrary_topology();
  Topology other = *arbitrary_relabelling(topology);
  for (Block& block : other.types)
    for (BlockVertex& vertex : block.vertices) vertex.label = "another";
  for (Block& block : other.types)
    for (BlockWire& wire : block.wires) wire.evidence = Evidence::inferred;
  for (const Finding& each : topology_difference(topology, other)) RC_ASSERT(each.code == "order");
}

struct Edit {
  std::string code, text;  // of the only difference
  std::function<void(Topology&)> change;
};

Block& block(Topology& topology) { return topology.types[0]; }

std::vector<Edit> edits() {
  return {
      {"routing", "PXN: false in the first, true in the second", [](auto& t) { t.routing.pxn = true; }},
      {"routing", "seed of the hash: 0", [](auto& t) { t.routing.seed = 3; }},
      {"known", "NVLink of block 0 is listed", [](auto& t) { block(t).nvlink_known = false; }},
      {"wire", "NVLink between GPU 0 on host 0 and NVSwitch chip 0 on host 0: 9 wires with 225 GB/s in the",
       [](auto& t) { block(t).wires[0].wires = block(t).wires[1].wires = 8; }},
      {"wire",
       "NVLink between GPU 0 on host 0 and NVSwitch chip 0 on host 0: 9 wires with 225 GB/s in the "
       "first, none in the second; so in 4 blocks",
       [](auto& t) { block(t).wires.erase(block(t).wires.begin(), block(t).wires.begin() + 2); }},
      {"rate", "NVLink from GPU 0 on host 0 to NVSwitch chip 0 on host 0: 225 GB/s in the first, unknown in",
       [](auto& t) { block(t).wires[0].rate = {0}; }},
      {"setting", "NVLink partition of GPU 3 on host 0: 0 in the first, 1",
       [](auto& t) { block(t).gpus[3].partition = 1; }},
      {"setting", "GPUDirect of GPU 3 on host 0", [](auto& t) { block(t).gpus[3].gpudirect = false; }},
      {"setting", "NIC of GPU 3 on host 0: the nearest in the first, number 2 of its host",
       [](auto& t) { block(t).gpus[3].nic = 2; }},
      {"port", "rail of NIC 3 on host 0", [](auto& t) { block(t).nics[3].rail = 9; }},
      {"port", "rate of NIC 3 on host 0: 50 GB/s in the first, 50.000000001 GB/s in the second",
       [](auto& t) { block(t).nics[3].rate.value += 1; }},
      {"port", "card of NIC 3 on host 0", [](auto& t) { block(t).nics[3].card = 9; }},
      {"vertex", "NVSwitch chip 5 on host 0 is in the second only",
       [](auto& t) {
         block(t).vertices.push_back({VertexKind::nvswitch, 0, 5});
       }},
      {"cable",
       "between leaf 0 and spine 0: 4 wires of 50 GB/s in the first, 3 wires of 50 GB/s in the second",
       [](auto& t) { t.network.cables[0].wires = 3; }},
      {"cable", "between leaf 0 and spine 0: 4 wires of 50 GB/s in the first, no wire in the second",
       [](auto& t) { t.network.cables.erase(t.network.cables.begin()); }},
      {"switch", "spine 7 is in the second only",
       [](auto& t) {
         t.network.switches.push_back({VertexKind::spine, "spine 7"});
       }},
      {"plug", "NIC 1 on host 2 is plugged into leaf 1 in the first, nothing in the second",
       [](auto& t) { t.switch_of_nic[9] = no_switch; }},
  };
}

TEST(TopologyDifference, names_each_edit_and_nothing_else) {
  for (const Edit& edit : edits()) {
    Topology changed = healthy_topology();
    edit.change(changed);
    const std::vector<Finding> found = topology_difference(healthy_topology(), changed);
    ASSERT_EQ(found.size(), 1u) << edit.text;
    EXPECT_EQ(found[0].code, edit.code);
    EXPECT_THAT(found[0].text, HasSubstr(edit.text));
    EXPECT_EQ(topology_difference(changed, healthy_topology()).size(), 1u);
  }
}

TEST(TopologyDifference, counts_hosts_gpus_and_nics) {
  const auto found = topology_difference(healthy_topology(4), healthy_topology(5));
  const auto text = [](const char* part) {
    return ::testing::Contains(::testing::Field(&Finding::text, HasSubstr(part)));
  };
  EXPECT_THAT(found, text("hosts: 4 in the first, 5 in the second"));
  EXPECT_THAT(found, text("GPUs: 16 in the first, 20 in the second"));
}

TEST(TopologyDifference, aligns_a_tier_by_position_where_no_name_is_common) {
  Topology other = healthy_topology();
  for (std::size_t leaf = 0; leaf < 4; ++leaf)
    other.network.switches[leaf].name = "IB-" + std::to_string(leaf);
  EXPECT_TRUE(topology_difference(healthy_topology(), other).empty());
  std::swap(other.network.switches[0].name, other.network.switches[1].name);
  EXPECT_TRUE(topology_difference(healthy_topology(), other).empty());
  other.network.cables[0].wires = 1;
  EXPECT_EQ(topology_difference(healthy_topology(), other)[0].code, "cable");
}

TEST(TopologyDifference, sees_gpus_that_changed_places) {
  Topology other = healthy_topology();
  std::swap(block(other).vertices[0].index, block(other).vertices[1].index);
  const auto found = topology_difference(healthy_topology(), other);
  EXPECT_THAT(found, ::testing::Contains(::testing::Field(&Finding::code, "order")));
}

}  // namespace
}  // namespace isthmus
