#include "model/topology/edits.hpp"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/block_builder.hpp"
#include "tests/support/fabric_generator.hpp"
#include "tests/support/fabric_tools.hpp"

namespace isthmus::edits_test {
namespace {

using Action = FabricEdit::Action;
using Subject = FabricEdit::Subject;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Whether the edit was taken; a refusal must leave the topology as it was and name the edit's key.
bool takes(Topology& topology, const FabricEdit& edit) {
  const Topology before = topology;
  const std::string said = refusal([&] { apply_edit(edit, "fabric.edits.7", topology); });
  if (said == "accepted") return true;
  RC_ASSERT(said.starts_with("fabric.edits.7"));
  RC_ASSERT(topology == before);
  return false;
}

RC_GTEST_PROP(Edits, a_refused_edit_names_its_key_and_changes_nothing, ()) {
  Topology topology = build_topology(*arbitrary_fabric_spec(40));
  for (int edits = 0; edits < 6; ++edits) takes(topology, *arbitrary_edit(topology));
}

RC_GTEST_PROP(Edits, no_edit_raises_a_rate, ()) {
  Topology topology = *arbitrary_topology(30, 3);
  const auto before = rates_by_name(Fabric(topology));
  const FabricEdit edit = *arbitrary_edit(topology);
  RC_PRE(takes(topology, edit));
  // Pools and wires are named by what hangs together, so only names of both are compared there.
  for (const auto& [name, rate] : rates_by_name(Fabric(topology))) {
    const auto old = before.find(name);
    const bool network = name.find(" on host ") == std::string::npos;
    RC_ASSERT(network || old != before.end());
    if (old != before.end()) RC_ASSERT(rate <= old->second);
  }
}

/// Whether an edit of hosts may change a link of this name.
bool names_link(const FabricEdit& edit, const std::string& name) {
  const auto of_host = [&](int host) { return name.ends_with(" on host " + std::to_string(host)); };
  if (std::none_of(edit.hosts.begin(), edit.hosts.end(), of_host)) return false;
  const bool nvlink = name.starts_with("NVLink");
  if (edit.subject == Subject::nvlink) {
    const auto of_gpu = [&](int gpu) { return name.find("GPU " + std::to_string(gpu) + " ") != name.npos; };
    return nvlink && (edit.gpus.empty() || std::any_of(edit.gpus.begin(), edit.gpus.end(), of_gpu));
  }
  return !nvlink;
}

RC_GTEST_PROP(Edits, an_edit_of_hosts_touches_only_what_it_names, ()) {
  Topology topology = *arbitrary_topology(30, 3);
  const auto before = rates_by_name(Fabric(topology));
  std::vector<int> hosts;
  for (int host = 0; host < host_count(topology); ++host) hosts.push_back(host);
  const FabricEdit edit = *arbitrary_host_edit(hosts);
  RC_PRE(takes(topology, edit));
  const auto after = rates_by_name(Fabric(topology));
  for (const auto& [name, rate] : before) {
    if (names_link(edit, name)) continue;
    const auto found = after.find(name);
    RC_ASSERT(found != after.end());
    RC_ASSERT(found->second == rate);
  }
}

RC_GTEST_PROP(Edits, no_edit_makes_reachable_what_was_not, ()) {
  Topology topology = *arbitrary_topology(30, 3);
  topology.routing.pxn = false;  // a GPU that loses its NIC takes another's rail
  const Fabric before(topology);
  const FabricEdit edit = *arbitrary_edit(topology);
  RC_PRE(edit.subject != Subject::nic && edit.subject != Subject::nics && edit.subject != Subject::leaf);
  RC_PRE(takes(topology, edit));
  const Fabric after(topology);
  for (int pair = 0; pair < 10; ++pair) {
    const GpuId from = any_gpu(before), to = any_gpu(before);
    RC_ASSERT(!after.reachable(from, to) || before.reachable(from, to));
  }
}

RC_GTEST_PROP(Edits, hosts_gpus_and_nics_keep_their_numbers, ()) {
  const Topology before = build_topology(*arbitrary_fabric_spec(30));
  Topology after = before;
  RC_PRE(takes(after, *arbitrary_edit(before)));
  RC_ASSERT(after.blocks.size() == before.blocks.size());
  RC_ASSERT(after.switch_of_nic.size() == before.switch_of_nic.size());
  RC_ASSERT(after.network.switches == before.network.switches);
  for (std::size_t i = 0; i < before.blocks.size(); ++i) {
    const Block &old = before.types[before.blocks[i]], &now = after.types[after.blocks[i]];
    RC_ASSERT(now.hosts == old.hosts);
    RC_ASSERT(now.gpus.size() == old.gpus.size());
    RC_ASSERT(now.nics.size() == old.nics.size());
    RC_ASSERT(now.vertices == old.vertices);
  }
}

RC_GTEST_PROP(Edits, edits_of_disjoint_hosts_commute, ()) {
  const Topology start = *arbitrary_topology(30, 2);
  const int hosts = host_count(start);
  RC_PRE(hosts >= 2);
  std::vector<int> lower, upper;
  for (int host = 0; host < hosts; ++host) (host < hosts / 2 ? lower : upper).push_back(host);
  const FabricEdit one = *arbitrary_host_edit(lower), other = *arbitrary_host_edit(upper);
  Topology first = start, second = start;
  RC_PRE(takes(first, one) && takes(second, other));
  RC_ASSERT(takes(first, other));
  RC_ASSERT(takes(second, one));
  const Fabric left(first), right(second);
  RC_ASSERT(rates_by_name(left) == rates_by_name(right));
  for (int pair = 0; pair < 5; ++pair) {
    const GpuId from = any_gpu(left), to = any_gpu(left);
    RC_ASSERT(left.reachable(from, to) == right.reachable(from, to));
    if (!left.reachable(from, to)) continue;
    RC_ASSERT(names_along(left, from.value, to.value) == names_along(right, from.value, to.value));
  }
}

RC_GTEST_PROP(Edits, hosts_edited_alike_share_a_type, ()) {
  Topology apart = build_topology(preset_spec("dgx-h100", 8)), together = apart;
  FabricEdit edit = *arbitrary_host_edit({3});
  RC_PRE(takes(apart, edit));
  edit.hosts = {5};
  RC_ASSERT(takes(apart, edit));
  edit.hosts = {3, 5};
  RC_ASSERT(takes(together, edit));
  RC_ASSERT(apart == together);
  RC_ASSERT(apart.blocks[3] == apart.blocks[5]);
  RC_ASSERT(apart.types.size() <= 2u);
}

RC_GTEST_PROP(Edits, no_hosts_means_all_hosts, ()) {
  Topology all = build_topology(*arbitrary_part(20)), listed = all;
  FabricEdit edit = *arbitrary_host_edit({0});
  RC_PRE(edit.action != Action::swap);
  edit.hosts.clear();
  const bool taken = takes(all, edit);
  for (int host = 0; host < host_count(listed); ++host) edit.hosts.push_back(host);
  RC_ASSERT(takes(listed, edit) == taken);
  RC_ASSERT(rates_by_name(Fabric(all)) == rates_by_name(Fabric(listed)));
}

TEST(Edits, wires_taken_one_by_one_equal_those_taken_at_once) {
  for (const char* preset : {"dgx-h100", "dgx-b200", "gb200-nvl72"}) {
    const FabricEdit one{.subject = Subject::nvlink, .hosts = {0}, .gpus = {1}, .wires = 1};
    FabricEdit three = one;
    three.wires = 3;
    const Fabric apart = preset_fabric(preset, 2, {one, one, one}),
                 together = preset_fabric(preset, 2, {three});
    EXPECT_DOUBLE_EQ(nvlink_rate(apart, 1), nvlink_rate(together, 1)) << preset;
    EXPECT_DOUBLE_EQ(nvlink_rate(together, 1), nvlink_rate(together, 0) * 15 / 18) << preset;
  }
}

TEST(Edits, all_wires_but_one_leave_one_eighteenth) {
  for (const char* preset : {"dgx-h100", "gb200-nvl72"}) {
    const Fabric fabric =
        preset_fabric(preset, 2, {{.subject = Subject::nvlink, .hosts = {0}, .gpus = {1}, .wires = 17}});
    EXPECT_DOUBLE_EQ(nvlink_rate(fabric, 1), nvlink_rate(fabric, 0) / 18) << preset;
    EXPECT_EQ(fabric.domain_of({1}), fabric.domain_of({0})) << preset;
  }
}

TEST(Edits, a_domain_can_be_cut_in_steps_and_a_whole_cut_changes_nothing) {
  for (const auto& [size, domains] : {std::pair{4, 18u}, {36, 2u}, {72, 1u}}) {
    const Fabric fabric =
        preset_fabric("gb200-nvl72", 18, {{.action = Action::cut, .subject = Subject::domain, .size = size}});
    EXPECT_EQ(fabric.domain_count(), domains) << size;
    for (std::uint32_t gpu = 0; gpu < 72; ++gpu) {
      EXPECT_EQ(fabric.domain_of({gpu}).value, gpu / static_cast<std::uint32_t>(size));
      EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), 900);
    }
  }
}

struct Refused {
  FabricEdit edit;
  std::string key;   // below fabric.edits.0
  FabricEdit taken;  // its accepted twin
};

std::vector<Refused> refused_of_hosts() {
  const FabricEdit nic{.subject = Subject::nic, .hosts = {1}, .gpus = {2}};
  const FabricEdit slow{.action = Action::degrade, .subject = Subject::nic, .gpus = {2}, .factor = 0.5};
  const FabricEdit chip{.subject = Subject::nvswitch, .switches = {3}};
  const FabricEdit swap{.action = Action::swap, .subject = Subject::nics, .gpus = {1, 2}};
  const FabricEdit cut{.action = Action::cut, .subject = Subject::domain, .size = 4};
  std::vector<Refused> all;
  const auto add = [&all](const FabricEdit& twin, const std::string& key, auto change) {
    FabricEdit edit = twin;
    change(edit);
    all.push_back({edit, key, twin});
  };
  add(nic, ".hosts", [](FabricEdit& edit) { edit.hosts = {64}; });
  add(nic, ".hosts", [](FabricEdit& edit) { edit.hosts = {0, -1}; });
  add(nic, ".gpus", [](FabricEdit& edit) { edit.gpus = {0, 8}; });
  add(nic, ".gpus", [](FabricEdit& edit) { edit.gpus = {-1}; });
  add(nic, ".factor", [](FabricEdit& edit) { edit.factor = 0.5; });
  add(nic, ".switches", [](FabricEdit& edit) { edit.switches = {0}; });
  add(nic, ".size", [](FabricEdit& edit) { edit.size = 4; });
  add(slow, ".factor", [](FabricEdit& edit) { edit.factor.reset(); });
  for (const double factor : {0.0, 1.0, -0.5, 1.5, std::nan("")}) {
    add(slow, ".factor", [factor](FabricEdit& edit) { edit.factor = factor; });
  }
  add(slow, "", [](FabricEdit& edit) { edit.bandwidth = gigabytes_per_second(20); });  // both
  add(slow, ".bandwidth", [](FabricEdit& edit) {
    edit.factor.reset();
    edit.bandwidth = gigabytes_per_second(51);  // faster than it is
  });
  add(slow, ".bandwidth", [](FabricEdit& edit) {
    edit.factor.reset();
    edit.bandwidth = Bandwidth{0};
  });
  add(chip, ".switches", [](FabricEdit& edit) { edit.switches = {4}; });
  add(swap, ".gpus", [](FabricEdit& edit) { edit.gpus = {1}; });
  add(swap, ".gpus", [](FabricEdit& edit) { edit.gpus = {1, 2, 3}; });
  add(swap, ".gpus", [](FabricEdit& edit) { edit.gpus = {1, 1}; });
  add(swap, ".gpus", [](FabricEdit& edit) { edit.gpus = {1, 8}; });
  add(cut, ".size", [](FabricEdit& edit) { edit.size.reset(); });
  add(cut, ".size", [](FabricEdit& edit) { edit.size = 0; });
  add(cut, ".size", [](FabricEdit& edit) { edit.size = -2; });
  return all;
}

std::vector<Refused> refused_of_the_network() {
  const FabricEdit cable{.subject = Subject::uplink, .switches = {15}, .wires = 1};
  const FabricEdit leaf{.subject = Subject::leaf, .switches = {15}};
  const FabricEdit spine{.subject = Subject::spine, .switches = {7}};
  std::vector<Refused> all;
  const auto add = [&all](const FabricEdit& twin, const std::string& key, auto change) {
    FabricEdit edit = twin;
    change(edit);
    all.push_back({edit, key, twin});
  };
  add(cable, ".switches", [](FabricEdit& edit) { edit.switches = {16}; });
  add(cable, ".wires", [](FabricEdit& edit) { edit.wires = 33; });
  add(cable, ".wires", [](FabricEdit& edit) { edit.wires = 0; });
  add(cable, ".wires", [](FabricEdit& edit) { edit.wires = -1; });
  add(cable, ".hosts", [](FabricEdit& edit) { edit.hosts = {0}; });
  add(leaf, ".switches", [](FabricEdit& edit) { edit.switches = {16}; });
  add(leaf, ".switches", [](FabricEdit& edit) { edit.switches = {-1}; });
  add(leaf, ".gpus", [](FabricEdit& edit) { edit.gpus = {0}; });
  add(spine, ".switches", [](FabricEdit& edit) { edit.switches = {8}; });
  add(spine, ".wires", [](FabricEdit& edit) { edit.wires = 1; });
  return all;
}

TEST(Edits, refusals_name_their_key_and_each_twin_is_taken) {
  const Topology whole = build_topology(preset_spec("dgx-h100-superpod", 64));
  auto all = refused_of_hosts();
  const auto more = refused_of_the_network();
  all.insert(all.end(), more.begin(), more.end());
  for (const Refused& row : all) {
    Topology topology = whole;
    const std::string said = refusal([&] { apply_edit(row.edit, "fabric.edits.0", topology); });
    EXPECT_THAT(said, StartsWith("fabric.edits.0" + row.key)) << rc::toString(row.edit);
    EXPECT_TRUE(topology == whole) << rc::toString(row.edit);
    EXPECT_EQ(refusal([&] { apply_edit(row.taken, "fabric.edits.0", topology); }), "accepted")
        << rc::toString(row.taken);
    EXPECT_FALSE(topology == whole) << rc::toString(row.taken);
  }
}

/// Two GPUs that six NVLinks join without a chip between them.
Topology direct_pair() {
  BlockBuilder builder("pair");
  builder.wire(WireKind::nvlink, builder.gpu(), builder.gpu(), 150, 6);
  Topology topology;
  topology.types = {builder.block};
  topology.blocks = {0};
  return topology;
}

TEST(Edits, a_bundle_between_two_slow_gpus_is_slowed_once) {
  for (const std::vector<int>& gpus : {std::vector<int>{}, {0}, {1}, {0, 1}}) {
    Topology topology = direct_pair();
    apply_edit({.action = Action::degrade, .subject = Subject::nvlink, .gpus = gpus, .factor = 0.5}, "edit",
               topology);
    for (const BlockWire& wire : topology.types[0].wires) EXPECT_EQ(wire.rate, gigabytes_per_second(75));
  }
}

TEST(Edits, a_share_of_an_unknown_rate_is_unknown_and_a_stated_rate_makes_it_known) {
  Topology topology = build_topology(preset_spec("dgx-h100", 1));
  for (BlockNic& nic : topology.types[0].nics) nic.rate = {};
  FabricEdit edit{.action = Action::degrade, .subject = Subject::nic, .factor = 0.5};
  apply_edit(edit, "edit", topology);
  for (const BlockNic& nic : topology.types[0].nics) EXPECT_EQ(nic.rate, Bandwidth{});
  edit.factor.reset();
  edit.bandwidth = gigabytes_per_second(25);
  apply_edit(edit, "edit", topology);
  for (const BlockNic& nic : topology.types[0].nics) EXPECT_EQ(nic.rate, gigabytes_per_second(25));
}

TEST(Edits, what_a_preset_lacks_cannot_be_edited) {
  const auto said = [](const std::string& preset, const FabricEdit& edit) {
    return fabric_refusal(preset_spec(preset, 2, {edit}));
  };
  EXPECT_THAT(said("dgx-h100", {.subject = Subject::spine, .switches = {0}}), StartsWith("fabric.edits.0"));
  EXPECT_THAT(said("dgx-h100", {.subject = Subject::uplink, .switches = {0}}), StartsWith("fabric.edits.0"));
  EXPECT_THAT(said("gb200-nvl72", {.subject = Subject::nvswitch, .switches = {18}}),
              StartsWith("fabric.edits.0.switches"));
  EXPECT_EQ(said("gb200-nvl72", {.subject = Subject::nvswitch, .switches = {17}}), "accepted");
  EXPECT_THAT(said("gb200-nvl72", {.subject = Subject::nic, .gpus = {4}}), StartsWith("fabric.edits.0.gpus"));
  EXPECT_EQ(said("gb200-nvl72", {.subject = Subject::nic, .gpus = {3}}), "accepted");
}

TEST(Edits, are_made_in_their_order) {
  const FabricEdit half{.action = Action::degrade, .subject = Subject::nic, .gpus = {0}, .factor = 0.5};
  const Fabric fabric = preset_fabric("dgx-h100", 1, {half, half});
  EXPECT_DOUBLE_EQ(nic_rate(fabric, 0), 12.5);
  EXPECT_THAT(fabric_refusal(preset_spec("dgx-h100", 1, {half, {.subject = Subject::nic, .hosts = {1}}})),
              HasSubstr("fabric.edits.1.hosts"));
}

}  // namespace
}  // namespace isthmus::edits_test
