#include "model/topology/networks.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

std::uint32_t count(const Network& network, VertexKind tier) {
  const auto is_tier = [tier](const NetworkSwitch& each) { return each.tier == tier; };
  return static_cast<std::uint32_t>(std::count_if(network.switches.begin(), network.switches.end(), is_tier));
}

RC_GTEST_PROP(Networks, every_leaf_has_all_its_wires_up_and_each_rail_its_leaf, ()) {
  const NetworkDesign design{.wire = gigabytes_per_second(50),
                             .oversubscription = *rc::gen::element(1.0, 1.5, 2.0, 3.0, 64.0)};
  const auto hosts = *rc::gen::inRange<std::uint32_t>(1, 3000);
  const Cabling cabling = superpod_network(design, hosts, 8);
  const auto up = std::max(1u, static_cast<std::uint32_t>(32 / design.oversubscription));
  std::map<std::uint32_t, std::uint32_t> wires;
  for (const NetworkCable& cable : cabling.network.cables) {
    RC_ASSERT(cabling.network.switches[cable.low].tier < cabling.network.switches[cable.high].tier);
    RC_ASSERT(cable.wire == design.wire);
    if (cabling.network.switches[cable.low].tier == VertexKind::leaf) wires[cable.low] += cable.wires;
  }
  RC_ASSERT(wires.size() == count(cabling.network, VertexKind::leaf));
  for (const auto& [leaf, total] : wires) RC_ASSERT(total == up);
  RC_ASSERT(cabling.switch_of_nic.size() == std::size_t{hosts} * 8);
  for (std::uint32_t nic = 0; nic < hosts * 8; ++nic) {
    RC_ASSERT(cabling.switch_of_nic[nic] == cabling.switch_of_nic[nic / 256 * 256 + nic % 8]);
    RC_ASSERT((nic < 8 || nic % 256 != 0 || cabling.switch_of_nic[nic] != cabling.switch_of_nic[nic - 8]));
  }
}

TEST(Networks, one_switch_and_rails_have_no_cables) {
  const Cabling one = one_switch(5, 4), rails = rail_switches(5, 4);
  EXPECT_EQ(one.network.switches.size(), 1u);
  EXPECT_TRUE(one.network.cables.empty());
  EXPECT_EQ(one.switch_of_nic, std::vector<std::uint32_t>(20, 0));
  EXPECT_EQ(rails.network.switches.size(), 4u);
  EXPECT_TRUE(rails.network.cables.empty());
  for (std::uint32_t nic = 0; nic < 20; ++nic) EXPECT_EQ(rails.switch_of_nic[nic], nic % 4);
}

}  // namespace
}  // namespace isthmus
