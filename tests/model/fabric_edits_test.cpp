// Broken and oddly wired machines whose effect follows from arithmetic: one test per known answer.

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fabric_tools.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::fabric_edits_test {
namespace {

using Action = FabricEdit::Action;
using Subject = FabricEdit::Subject;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// The fabric of a scenario whose text says `fabric`.
Fabric from_text(const std::string& fabric) {
  return Fabric(parsed(replaced(whole_refit, "{preset: dgx-h100, hosts: 4}", fabric)).fabric);
}

TEST(FabricEdits, a_chip_with_four_wires_per_gpu_takes_100_of_450_and_one_with_five_125) {
  for (const auto& [chip, left] : {std::pair{0, 350.0}, {1, 325.0}, {2, 325.0}, {3, 350.0}}) {
    const Fabric fabric = preset_fabric(
        "dgx-h100", 2, {{.action = Action::remove, .subject = Subject::nvswitch, .switches = {chip}}});
    for (std::uint32_t gpu = 0; gpu < 16; ++gpu) EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), left) << chip;
  }
}

TEST(FabricEdits, a_chip_of_one_host_leaves_other_hosts_as_they_were) {
  const Fabric fabric =
      from_text("{preset: dgx-h100, hosts: 4, edits: [{remove: nvswitch, switches: 0, hosts: 2}]}");
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu) {
    EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), gpu / 8 == 2 ? 350 : 450) << gpu;
  }
}

TEST(FabricEdits, one_wire_of_one_gpu_takes_25_of_450) {
  const Fabric fabric =
      from_text("{preset: dgx-h100, hosts: 4, edits: [{remove: nvlink, hosts: 0, gpus: 3, wires: 1}]}");
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu) {
    EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), gpu == 3 ? 425 : 450) << gpu;
  }
}

TEST(FabricEdits, a_chip_of_an_nvl72_takes_50_of_every_gpu_and_a_tray_of_two_chips_100) {
  for (const auto& [switches, left] : {std::pair{"7", 850.0}, {"[6, 7]", 800.0}}) {
    const Fabric fabric = from_text(fmt::format(
        "{{preset: gb200-nvl72, hosts: 18, edits: [{{remove: nvswitch, switches: {}}}]}}", switches));
    EXPECT_EQ(fabric.domain_count(), 1u);
    for (std::uint32_t gpu = 0; gpu < 72; ++gpu) EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), left);
  }
}

TEST(FabricEdits, a_rack_without_one_tray_is_a_domain_of_68_gpus_with_whole_ports) {
  const Fabric fabric = from_text("{preset: gb200-nvl72, hosts: 17, gpus_per_rack: 68}");
  EXPECT_EQ(fabric.gpu_count(), 68u);
  EXPECT_EQ(fabric.domain_count(), 1u);
  for (std::uint32_t gpu = 0; gpu < 68; ++gpu) EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), 900);
}

TEST(FabricEdits, a_dead_chip_and_a_dead_wire_to_another_add_up_for_that_gpu_alone) {
  const Fabric fabric = preset_fabric("gb200-nvl72", 18,
                                      {{.subject = Subject::nvswitch, .switches = {4}},
                                       {.subject = Subject::nvlink, .hosts = {5}, .gpus = {1}, .wires = 1}});
  for (std::uint32_t gpu = 0; gpu < 72; ++gpu) {
    EXPECT_DOUBLE_EQ(nvlink_rate(fabric, gpu), gpu == 5 * 4 + 1 ? 800 : 850) << gpu;
  }
}

TEST(FabricEdits, a_pulled_cage_of_a_dgx_h100_takes_two_rails_and_leaves_300_of_400) {
  for (const auto& rails :
       {std::vector<int>{7, 4}, std::vector<int>{6, 5}, std::vector<int>{2, 1}, std::vector<int>{3, 0}}) {
    const Fabric fabric =
        preset_fabric("dgx-h100-superpod", 4, {{.subject = Subject::nic, .hosts = {1}, .gpus = rails}});
    EXPECT_DOUBLE_EQ(network_rate(fabric, 0), 400);
    EXPECT_DOUBLE_EQ(network_rate(fabric, 1), 300);
    for (const int rail : rails) {
      const std::uint32_t gpu = 8 + static_cast<std::uint32_t>(rail);
      EXPECT_THAT(names_along(fabric, gpu, 0),
                  Not(Contains(fmt::format("NIC out of GPU {} on host 1", rail))));
    }
  }
}

TEST(FabricEdits, with_pxn_a_gpu_whose_nic_failed_reaches_each_rail_through_the_other_seven) {
  const Fabric fabric = from_text(
      "{preset: dgx-h100-superpod, hosts: 4, pxn: true, edits: [{remove: nic, hosts: 0, gpus: 2}]}");
  EXPECT_DOUBLE_EQ(network_rate(fabric, 0), 350);
  std::set<std::string> exits;
  for (std::uint32_t rail = 0; rail < 8; ++rail) {
    const auto names = names_along(fabric, 2, 8 + rail);
    EXPECT_THAT(names, Not(Contains("NIC out of GPU 2 on host 0")));
    for (const std::string& name : names) {
      if (name.starts_with("NIC out of")) exits.insert(name);
    }
    EXPECT_DOUBLE_EQ(least_along(fabric, 2, 8 + rail), 50);
  }
  EXPECT_EQ(exits.size(), 7u);
}

TEST(FabricEdits, eight_senders_to_one_receiver_share_its_nic_and_seven_inside_the_host_its_nvlink) {
  const Fabric fabric = preset_fabric("dgx-h100", 2);
  for (std::uint32_t sender = 8; sender < 16; ++sender) {
    EXPECT_THAT(fabric.route({sender}, {0}), Contains(*fabric.nic_in({0})));
  }
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.nic_in({0})) / 8, 6.25);
  for (std::uint32_t sender = 1; sender < 8; ++sender) {
    EXPECT_THAT(fabric.route({sender}, {0}), Contains(*fabric.nvlink_in({0})));
  }
  EXPECT_NEAR(rate_of(fabric, fabric.nvlink_in({0})) / 7, 64.3, 0.05);
}

TEST(FabricEdits, one_spine_of_16_takes_two_of_32_wires_from_each_leaf) {
  const Fabric whole = preset_fabric("dgx-h100-superpod", 128);
  const Fabric fabric =
      from_text("{preset: dgx-h100-superpod, hosts: 128, edits: [{remove: spine, switches: 5}]}");
  for (int unit = 0; unit < 4; ++unit) {
    for (int rail = 0; rail < 8; ++rail) {
      for (const char* way : {"up", "down"}) {
        const std::string name = fmt::format("leaf {} of unit {} {}-links", rail, unit, way);
        EXPECT_DOUBLE_EQ(rate_named(whole, name), 32 * 50) << name;
        EXPECT_DOUBLE_EQ(rate_named(fabric, name), 30 * 50) << name;
      }
    }
  }
  EXPECT_EQ(fabric.switch_hops({0}, {32 * 8}), 3);
}

TEST(FabricEdits, one_cable_takes_one_of_32_wires_from_its_leaf_alone) {
  const Fabric fabric =
      from_text("{preset: dgx-h100-superpod, hosts: 128, edits: [{remove: uplink, switches: 11, wires: 1}]}");
  for (int leaf = 0; leaf < 32; ++leaf) {
    const std::string name = fmt::format("leaf {} of unit {} up-links", leaf % 8, leaf / 8);
    EXPECT_DOUBLE_EQ(rate_named(fabric, name), (leaf == 11 ? 31 : 32) * 50) << name;
  }
}

TEST(FabricEdits, a_dead_leaf_takes_its_rail_from_the_32_hosts_of_its_unit) {
  for (const bool pxn : {false, true}) {
    const Fabric fabric =
        from_text(fmt::format("{{preset: dgx-h100-superpod, hosts: 64, pxn: {}, edits: [{{remove: leaf, "
                              "switches: 3}}]}}",
                              pxn));
    for (std::uint32_t host = 0; host < 64; ++host) {
      EXPECT_DOUBLE_EQ(network_rate(fabric, host), host < 32 ? 350 : 400) << host;
    }
    EXPECT_THAT(names_along(fabric, 3, 32 * 8 + 3), Not(Contains("leaf 3 of unit 0 up-links")));
    EXPECT_THAT(names_along(fabric, 32 * 8 + 3, 3), Not(Contains("leaf 3 of unit 0 down-links")));
    EXPECT_DOUBLE_EQ(least_along(fabric, 3, 32 * 8 + 3), 50);
  }
}

TEST(FabricEdits, one_spine_of_nine_takes_two_of_18_wires_from_each_leaf_of_eight_racks) {
  const Fabric fabric = from_text("{preset: gb200-nvl72, hosts: 144, edits: [{remove: spine, switches: 8}]}");
  for (int rack = 0; rack < 8; ++rack) {
    for (int rail = 0; rail < 4; ++rail) {
      EXPECT_DOUBLE_EQ(rate_named(fabric, fmt::format("leaf {} of rack {} up-links", rail, rack)), 16 * 50);
    }
  }
}

TEST(FabricEdits, a_leaf_with_14_of_18_wires_gives_each_of_18_trays_38_9) {
  const Fabric fabric =
      preset_fabric("gb200-nvl72", 144, {{.subject = Subject::uplink, .switches = {2 * 4 + 1}, .wires = 4}});
  EXPECT_NEAR(rate_named(fabric, "leaf 1 of rack 2 up-links") / 18, 38.9, 0.05);
  EXPECT_NEAR(rate_named(fabric, "leaf 1 of rack 2 down-links") / 18, 38.9, 0.05);
  EXPECT_DOUBLE_EQ(rate_named(fabric, "leaf 1 of rack 3 up-links") / 18, 50);
  for (std::uint32_t tray = 0; tray < 18; ++tray) {
    const std::uint32_t from = (2 * 18 + tray) * 4 + 1;
    EXPECT_THAT(names_along(fabric, from, 1), Contains("leaf 1 of rack 2 up-links"));
  }
}

TEST(FabricEdits, spines_do_not_matter_on_a_rail_of_one_rack) {
  const std::string all_spines = "{remove: spine, switches: 0-8}, {disable: mnnvl}";
  const Fabric fabric =
      from_text(fmt::format("{{preset: gb200-nvl72, hosts: 144, edits: [{}]}}", all_spines));
  EXPECT_EQ(fabric.switch_hops({1}, {17 * 4 + 1}), 1);
  EXPECT_DOUBLE_EQ(least_along(fabric, 1, 17 * 4 + 1), 50);
  EXPECT_FALSE(fabric.reachable({1}, {18 * 4 + 1}));
  EXPECT_FALSE(fabric.reachable({1}, {17 * 4 + 2}));
}

TEST(FabricEdits, trays_without_nvlink_between_them_share_their_four_nics) {
  const FabricEdit off{.action = Action::disable, .subject = Subject::mnnvl};
  const FabricEdit cut{.action = Action::cut, .subject = Subject::domain, .size = 4};
  for (const FabricEdit& edit : {off, cut}) {
    const Fabric fabric = preset_fabric("gb200-nvl72", 18, {edit});
    EXPECT_EQ(fabric.domain_count(), 18u);
    EXPECT_DOUBLE_EQ(network_rate(fabric, 0), 200);
    EXPECT_THAT(names_along(fabric, 0, 4), Contains("NIC out of GPU 0 on host 0"));
    EXPECT_EQ(names_along(fabric, 0, 3),
              (std::vector<std::string>{"NVLink out of GPU 0 on host 0", "NVLink into GPU 3 on host 0"}));
    EXPECT_DOUBLE_EQ(nvlink_rate(fabric, 0), 900);
  }
}

TEST(FabricEdits, two_to_one_leaves_halve_what_32_nics_send_to_another_unit_and_not_inside) {
  const Fabric fabric = from_text("{preset: dgx-h100-superpod, hosts: 64, oversubscription: 2}");
  EXPECT_DOUBLE_EQ(rate_named(fabric, "leaf 0 of unit 0 up-links") / 32, 25);
  EXPECT_EQ(fabric.switch_hops({0}, {31 * 8}), 1);
  EXPECT_THAT(names_along(fabric, 0, 31 * 8), Each(Not(HasSubstr("leaf"))));
  EXPECT_DOUBLE_EQ(least_along(fabric, 0, 31 * 8), 50);
}

TEST(FabricEdits, a_rail_at_half_rate_leaves_each_host_375) {
  const Fabric halved =
      from_text("{preset: dgx-h100-superpod, hosts: 4, edits: [{degrade: nic, gpus: 6, factor: 0.5}]}");
  const Fabric stated =
      from_text("{preset: dgx-h100, hosts: 4, edits: [{degrade: nic, gpus: 6, bandwidth: 200 Gbit/s}]}");
  for (const Fabric* fabric : {&halved, &stated}) {
    for (std::uint32_t gpu = 0; gpu < 32; ++gpu) {
      EXPECT_DOUBLE_EQ(nic_rate(*fabric, gpu), gpu % 8 == 6 ? 25 : 50);
    }
    for (std::uint32_t host = 0; host < 4; ++host) EXPECT_DOUBLE_EQ(network_rate(*fabric, host), 375);
  }
}

TEST(FabricEdits, a_gpu_whose_nic_is_on_the_other_socket_gets_what_lies_between_the_sockets) {
  const Fabric fabric =
      from_text("{preset: dgx-h100-superpod, hosts: 2, edits: [{swap: nics, hosts: 0, gpus: [0, 4]}]}");
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    const double rate = gpu == 0 || gpu == 4 ? 22 : 50;
    EXPECT_DOUBLE_EQ(least_along(fabric, gpu, 8 + gpu), rate) << gpu;
    EXPECT_DOUBLE_EQ(least_along(fabric, 8 + gpu, gpu), rate) << gpu;
  }
}

/// Links of the routes out of and into GPU 0 of two hosts whose rate is that of a PCIe x16 slot.
std::vector<LinkId> shared_by_both_directions(const Fabric& fabric) {
  std::vector<LinkId> shared;
  const auto out = fabric.route({0}, {8}), in = fabric.route({8}, {0});
  for (const LinkId link : out) {
    if (std::find(in.begin(), in.end(), link) != in.end()) shared.push_back(link);
  }
  return shared;
}

TEST(FabricEdits, without_gpudirect_each_direction_of_the_up_link_carries_two_streams) {
  const Fabric whole = preset_fabric("dgx-h100", 2);
  EXPECT_TRUE(shared_by_both_directions(whole).empty());
  const Fabric fabric = from_text("{preset: dgx-h100, hosts: 2, edits: [{disable: gpudirect, hosts: 0}]}");
  EXPECT_DOUBLE_EQ(least_along(fabric, 0, 8), 50);
  EXPECT_DOUBLE_EQ(least_along(fabric, 8, 0), 50);
  const auto shared = shared_by_both_directions(fabric);
  EXPECT_EQ(shared.size(), 2u);
  for (const LinkId link : shared) {
    EXPECT_EQ(fabric.links()[link.index()].link_class, LinkClass::pcie);
    EXPECT_DOUBLE_EQ(rate_of(fabric, link) / 2, 31.5);
  }
}

TEST(FabricEdits, a_leaf_without_up_links_reaches_its_own_hosts_and_no_other_unit) {
  const Fabric fabric =
      from_text("{preset: dgx-h100-superpod, hosts: 64, edits: [{remove: uplink, switches: 3}]}");
  EXPECT_EQ(fabric.switch_hops({3}, {8 + 3}), 1);
  EXPECT_FALSE(fabric.reachable({3}, {32 * 8 + 3}));
  EXPECT_FALSE(fabric.reachable({32 * 8 + 3}, {3}));
  EXPECT_FALSE(fabric.reachable({3}, {8 + 4}));
  EXPECT_TRUE(fabric.reachable({4}, {32 * 8 + 3}));
  EXPECT_THAT(refusal([&] { fabric.route({3}, {32 * 8 + 3}); }), HasSubstr("fabric"));
  EXPECT_NE(refusal([&] { fabric.route({3}, {32 * 8 + 3}); }), "accepted");
  EXPECT_NE(refusal([&] { fabric.switch_hops({3}, {32 * 8 + 3}); }), "accepted");
}

TEST(FabricEdits, pxn_keeps_to_the_destinations_rail_even_where_its_leaf_has_lost_its_up_links) {
  const Fabric fabric =
      from_text("{preset: dgx-h100-superpod, hosts: 64, pxn: true, edits: [{remove: uplink, switches: 3}]}");
  EXPECT_FALSE(fabric.reachable({0}, {32 * 8 + 3}));
  EXPECT_TRUE(fabric.reachable({0}, {8 + 3}));
  EXPECT_TRUE(fabric.reachable({3}, {32 * 8 + 4}));
}

TEST(FabricEdits, all_up_links_but_one_still_reach_everything_in_three_hops) {
  const Fabric fabric =
      from_text("{preset: dgx-h100-superpod, hosts: 64, edits: [{remove: uplink, switches: 3, wires: 31}]}");
  EXPECT_EQ(fabric.switch_hops({3}, {32 * 8 + 3}), 3);
  EXPECT_DOUBLE_EQ(least_along(fabric, 3, 32 * 8 + 3), 50);
  EXPECT_DOUBLE_EQ(rate_named(fabric, "leaf 3 of unit 0 up-links"), 50);
}

TEST(FabricEdits, one_nic_per_host_is_shared_by_eight_gpus) {
  const Fabric fabric = from_text("{preset: dgx-h100, hosts: 2, edits: [{remove: nic, gpus: [1-7]}]}");
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(fabric.nic_out({gpu}), fabric.nic_out({0})) << gpu;
  EXPECT_DOUBLE_EQ(network_rate(fabric, 0) / 8, 6.25);
}

TEST(FabricEdits, a_gpu_without_nvlink_is_a_domain_of_its_own_behind_pcie) {
  const Fabric fabric = from_text("{preset: dgx-b200, hosts: 1, edits: [{remove: nvlink, gpus: 2}]}");
  EXPECT_EQ(fabric.domain_count(), 2u);
  EXPECT_FALSE(fabric.nvlink_out({2}));
  EXPECT_FALSE(fabric.nvlink_in({2}));
  for (const LinkId link : fabric.route({2}, {0})) {
    EXPECT_EQ(fabric.links()[link.index()].link_class, LinkClass::pcie);
  }
  EXPECT_EQ(fabric.switch_hops({2}, {0}), 0);
}

TEST(FabricEdits, a_host_without_any_nic_is_reachable_from_nowhere) {
  const Fabric fabric = from_text("{preset: dgx-h100, hosts: 2, edits: [{remove: nic, hosts: 1}]}");
  EXPECT_FALSE(fabric.nic_out({8}));
  EXPECT_FALSE(fabric.nic_in({8}));
  EXPECT_FALSE(fabric.reachable({0}, {8}));
  EXPECT_FALSE(fabric.reachable({8}, {0}));
  EXPECT_TRUE(fabric.reachable({8}, {9}));
  EXPECT_TRUE(fabric.exit_links({8}, true).empty());
  EXPECT_EQ(fabric.exit_links({0}, true), std::vector{*fabric.nic_out({0})});
}

TEST(FabricEdits, a_slow_chip_or_wire_or_slot_shows_in_its_link_alone) {
  const Fabric chip =
      from_text("{preset: dgx-h100, hosts: 1, edits: [{degrade: nvswitch, switches: 1, factor: 0.5}]}");
  const Fabric wire =
      from_text("{preset: dgx-h100, hosts: 1, edits: [{degrade: nvlink, gpus: 5, factor: 0.5}]}");
  const Fabric slot =
      from_text("{preset: dgx-h100, hosts: 1, edits: [{degrade: pcie, gpus: 5, bandwidth: 8 GB/s}]}");
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_DOUBLE_EQ(nvlink_rate(chip, gpu), 450 - 125 / 2.0);
    EXPECT_DOUBLE_EQ(nvlink_rate(wire, gpu), gpu == 5 ? 225 : 450);
    EXPECT_DOUBLE_EQ(rate_named(slot, fmt::format("PCIe out of GPU {} on host 0", gpu)), gpu == 5 ? 8 : 63);
  }
}

TEST(FabricEdits, a_rail_halved_upstream_takes_half_of_its_leafs_wires) {
  const Fabric fabric = from_text(
      "{preset: dgx-h100-superpod, hosts: 64, edits: [{degrade: uplink, switches: [3, 11], factor: 0.5}]}");
  for (int leaf = 0; leaf < 16; ++leaf) {
    const std::string name = fmt::format("leaf {} of unit {} up-links", leaf % 8, leaf / 8);
    EXPECT_DOUBLE_EQ(rate_named(fabric, name), leaf % 8 == 3 ? 800 : 1600) << name;
  }
}

}  // namespace
}  // namespace isthmus::fabric_edits_test
