#include "model/topology/findings.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "model/topology/topology_faults.hpp"
#include "tests/support/topology_generator.hpp"
#include "tests/support/topology_relabelling.hpp"

namespace isthmus::findings_test {
namespace {

using ::testing::HasSubstr;
using Codes = std::set<std::string>;

Codes codes_of(const std::vector<Finding>& findings) {
  Codes codes;
  for (const Finding& finding : findings) codes.insert(finding.code);
  return codes;
}

struct Planted {
  Codes codes;
  std::string text;  // part of the first finding
  std::function<void(Topology&)> change;
};

Block& block(Topology& topology) { return topology.types[0]; }

void remove_wires(Topology& topology, std::ptrdiff_t first, std::ptrdiff_t count) {
  auto& wires = block(topology).wires;
  wires.erase(wires.begin() + first, wires.begin() + first + count);
}

void set_rate(Topology& topology, std::size_t record, std::int64_t rate) {
  block(topology).wires[record].rate = block(topology).wires[record + 1].rate = {rate};
}

/// Ten records per GPU: NVLink to both chips, GPU to PCIe switch, NIC to it, it to the CPU, each both ways.
std::vector<Planted> planted_in_blocks() {
  return {
      {{"gpu-without-nvlink"},
       "GPU 0 on host 0 has no NVLink, 3 other GPUs of its host do",
       [](Topology& t) { remove_wires(t, 0, 4); }},
      {{"gpu-with-fewer-nvlinks"},
       "GPU 1 on host 0 has 17 NVLinks, most GPUs of its domain 18",
       [](Topology& t) {
         block(t).wires[10].wires = block(t).wires[11].wires = 8;
         set_rate(t, 10, 200'000'000'000);
       }},
      {{"shared-nearest-nic"},
       "GPU 0 on host 0 and GPU 1 on host 0 would both use NIC 1 on host 0",
       [](Topology& t) { block(t).gpus[0].nic = 1; }},
      {{"more-gpus-than-nics"},
       "host 0 has 4 GPUs and 3 NICs; so in all 4 blocks",
       [](Topology& t) { block(t).nics[0].card = 1; }},
      {{"gpudirect-off"}, "GPU 2 on host 0", [](Topology& t) { block(t).gpus[2].gpudirect = false; }},
      {{"gpu-without-nic"}, "from GPU 0 on host 0", [](Topology& t) { remove_wires(t, 4, 2); }},
      {{"nvswitch-not-connected"},
       "NVSwitch chip 2 on host 0",
       [](Topology& t) {
         block(t).vertices.push_back({VertexKind::nvswitch, 0, 2});
       }},
      {{"nvlink-unknown"}, "how NVLink joins the 4 GPUs", [](Topology& t) { block(t).nvlink_known = false; }},
      {{"odd-link-rate"},
       "NVLink between GPU 0 on host 0 and NVSwitch chip 0 on host 0 runs at 20 GB/s per wire",
       [](Topology& t) { set_rate(t, 0, 180'000'000'000); }},
      {{"nic-behind-slower-slot", "odd-link-rate"},
       "PCIe between NIC 0 on host 0 and PCIe switch 0 on host 0 runs at 31.5 GB/s",
       [](Topology& t) { set_rate(t, 6, 31'500'000'000); }},
      {{"rate-unknown"}, "the rate of 9 NVLink wires", [](Topology& t) { set_rate(t, 0, 0); }},
      {{"odd-link-rate"},
       "NIC 3 on host 0 runs at 25 GB/s, most NICs at 50 GB/s",
       [](Topology& t) { block(t).nics[3].rate = {25'000'000'000}; }},
  };
}

std::vector<Planted> planted_in_network() {
  return {
      {{"host-with-fewer-gpus"},
       "host 4 has 3 GPUs, most hosts 4",
       [](Topology& t) {
         t.types.push_back(healthy_topology(1, 3).types[0]);
         t.blocks.push_back(1);
         t.switch_of_nic.insert(t.switch_of_nic.end(), {0, 1, 2});
       }},
      {{"nic-not-cabled"},
       "NIC 1 on host 2 is not cabled",
       [](Topology& t) { t.switch_of_nic[9] = no_switch; }},
      {{"rail-on-another-leaf"},
       "NIC 0 on host 0 is of rail 0 and plugged into leaf 1, whose other NICs are of rail 1",
       [](Topology& t) { std::swap(t.switch_of_nic[0], t.switch_of_nic[1]); }},
      {{"leaf-short-of-up-links"},
       "leaf 0 has 7 wires up, most leaves 8",
       [](Topology& t) { t.network.cables[0].wires = 3; }},
      {{"switch-not-connected"},
       "nothing is plugged into spine 9",
       [](Topology& t) {
         t.network.switches.push_back({VertexKind::spine, "spine 9"});
       }},
      {{"leaf-short-of-up-links", "network-in-parts"},
       "leaf 0 has 0 wires up",
       [](Topology& t) {
         auto& cables = t.network.cables;
         cables.erase(std::remove_if(cables.begin(), cables.end(), [](auto& c) { return c.low == 0; }),
                      cables.end());
       }},
      {{"odd-link-rate"},
       "4 cables between leaf 0 and spine 0 run at 25 GB/s",
       [](Topology& t) { t.network.cables[0].wire = {25'000'000'000}; }},
      {{"rate-unknown"}, "the rate of 4 cables", [](Topology& t) { t.network.cables[0].wire = {0}; }},
      {{"network-unknown"},
       "between the 4 hosts",
       [](Topology& t) {
         t.network = {};
         t.switch_of_nic.assign(16, no_switch);
       }},
  };
}

void judge(const std::vector<Planted>& all) {
  for (const Planted& planted : all) {
    Topology topology = healthy_topology();
    planted.change(topology);
    ASSERT_TRUE(topology_faults(topology).empty()) << planted.text;
    const std::vector<Finding> findings = topology_findings(topology);
    EXPECT_EQ(codes_of(findings), planted.codes) << planted.text;
    ASSERT_FALSE(findings.empty());
    EXPECT_THAT(findings[0].text, HasSubstr(planted.text));
  }
}

TEST(Findings, in_a_healthy_fabric_are_none) {
  EXPECT_TRUE(topology_findings(healthy_topology()).empty());
  EXPECT_TRUE(topology_findings(healthy_topology(1)).empty());
}

TEST(Findings, planted_in_a_block_are_named_and_nothing_else) { judge(planted_in_blocks()); }
TEST(Findings, planted_in_the_network_are_named_and_nothing_else) { judge(planted_in_network()); }

TEST(Findings, name_gpus_whose_nics_are_on_another_socket) {
  Block host{"two sockets"};
  host.vertices = {
      {VertexKind::gpu, 0, 0}, {VertexKind::cpu, 0, 0}, {VertexKind::cpu, 0, 1}, {VertexKind::nic, 0, 0}};
  join(host, 0, 1, WireKind::pcie, 1, {63'000'000'000});
  join(host, 3, 2, WireKind::pcie, 1, {63'000'000'000});
  host.gpus = {{0, 0, true, std::nullopt}};
  host.nics = {{3, 0, 0, {50'000'000'000}}};
  Topology topology;
  topology.types = {host};
  topology.blocks = {0};
  topology.switch_of_nic = {no_switch};
  EXPECT_EQ(codes_of(topology_findings(topology)), Codes{"gpu-without-nic"});
  join(topology.types[0], 1, 2, WireKind::socket, 1, {22'000'000'000});
  EXPECT_EQ(codes_of(topology_findings(topology)), Codes{"nic-on-another-socket"});
}

TEST(Findings, do_not_take_what_nccl_plans_with_for_a_slow_slot) {
  Topology topology = healthy_topology();
  for (BlockWire& wire : block(topology).wires)
    if (wire.kind == WireKind::pcie) wire.rate = {48'000'000'000};
  EXPECT_EQ(codes_of(topology_findings(topology)), Codes{"nic-behind-slower-slot"});
  for (BlockWire& wire : block(topology).wires) wire.evidence = Evidence::nccl;
  EXPECT_TRUE(topology_findings(topology).empty());
}

TEST(Findings, of_one_code_are_counted_beyond_a_few) {
  Topology topology = healthy_topology(16);
  topology.network.switches.push_back({VertexKind::spine, "spine 9"});
  std::fill(topology.switch_of_nic.begin(), topology.switch_of_nic.begin() + 45, no_switch);
  const std::vector<Finding> findings = topology_findings(topology);
  const auto count = std::count_if(findings.begin(), findings.end(),
                                   [](const Finding& f) { return f.code == "nic-not-cabled"; });
  EXPECT_EQ(count, 9);
  EXPECT_THAT(findings, ::testing::Contains(Finding{"nic-not-cabled", "and 37 more like these"}));
}

std::multiset<std::string> sorted_texts(const Topology& topology) {
  std::multiset<std::string> texts;
  for (const Finding& finding : topology_findings(topology, 1'000'000))
    texts.insert(finding.code + ": " + finding.text);
  return texts;
}

RC_GTEST_PROP(Findings, do_not_depend_on_the_order_of_vertices_wires_and_cables, ()) {
  Topology topology = *arbitrary_topology();
  for (Block& each : topology.types) each.name = "";
  Topology other = *arbitrary_relabelling(topology);
  for (Block& each : other.types) each.name = "";
  RC_ASSERT(sorted_texts(topology) == sorted_texts(other));
}

RC_GTEST_PROP(Findings, are_printable_lines_with_codes, ()) {
  for (const Finding& finding : topology_findings(*arbitrary_topology())) {
    RC_ASSERT(!finding.code.empty() && !finding.text.empty());
    RC_ASSERT(finding.code.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos);
    RC_ASSERT(finding.text.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace isthmus::findings_test
