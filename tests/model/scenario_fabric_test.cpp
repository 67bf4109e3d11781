#include "model/scenario_fabric.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/scenario_generator.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::scenario_fabric_test {
namespace {

using Action = FabricEdit::Action;
using Subject = FabricEdit::Subject;
using ::testing::StartsWith;

std::string with(const std::string& fabric) {
  return replaced(whole_refit, "{preset: dgx-h100, hosts: 4}", fabric);
}

FabricSpec read(const std::string& fabric) { return parsed(with(fabric)).fabric; }

/// What stands behind "s.yaml:3: fabric.".
std::string fault_in(const std::string& fabric) {
  const std::string fault = fault_of(with(fabric));
  const std::string_view place = "s.yaml:3: fabric.";
  return fault.starts_with(place) ? fault.substr(place.size()) : "elsewhere: " + fault;
}

TEST(ScenarioFabric, every_key_of_a_preset_is_read) {
  FabricSpec spec;
  spec.preset = "gb300-nvl72";
  spec.hosts = 32;
  spec.nic_bandwidth = Bandwidth{50'000'000'000};
  spec.nvlink_bandwidth = Bandwidth{800'000'000'000};
  spec.pcie_bandwidth = Bandwidth{63'000'000'000};
  spec.network = NetworkKind::superpod;
  spec.oversubscription = 1.5;
  spec.gpus_per_rack = 64;
  spec.routing = {.pxn = true, .hashed = true, .seed = 7};
  EXPECT_EQ(read("{preset: gb300-nvl72, hosts: 32, nic_bandwidth: 400 Gbit/s, nvlink_bandwidth: 800 GB/s, "
                 "pcie_bandwidth: 63 GB/s, network: superpod, oversubscription: 1.5, gpus_per_rack: 64, "
                 "pxn: true, routing: hashed, hash_seed: 7}"),
            spec);
}

TEST(ScenarioFabric, keys_left_out_have_the_documented_defaults) {
  const FabricSpec spec = read("{preset: dgx-b200, hosts: 3}");
  FabricSpec expected;
  expected.preset = "dgx-b200";
  expected.hosts = 3;
  EXPECT_EQ(spec, expected);
  EXPECT_EQ(read("{preset: dgx-b200, hosts: 3, routing: adaptive, pxn: false, hash_seed: 0}"), expected);
}

TEST(ScenarioFabric, edits_are_read_in_order_with_their_ranges) {
  const FabricSpec spec = read(
      "{preset: dgx-h100, hosts: 9, edits: [{remove: nvswitch, switches: 0}, {remove: nic, hosts: [0-2, 8], "
      "gpus: 1}, {degrade: uplink, switches: [3, 1], factor: 0.25, wires: 2}, {disable: gpudirect}, "
      "{swap: nics, gpus: [5, 2]}, {cut: domain, size: 4}, {degrade: pcie, bandwidth: 1 GB/s}]}");
  const std::vector<FabricEdit> expected{
      {.subject = Subject::nvswitch, .switches = {0}},
      {.subject = Subject::nic, .hosts = {0, 1, 2, 8}, .gpus = {1}},
      {.action = Action::degrade, .subject = Subject::uplink, .switches = {3, 1}, .wires = 2, .factor = 0.25},
      {.action = Action::disable, .subject = Subject::gpudirect},
      {.action = Action::swap, .subject = Subject::nics, .gpus = {5, 2}},
      {.action = Action::cut, .subject = Subject::domain, .size = 4},
      {.action = Action::degrade, .subject = Subject::pcie, .bandwidth = Bandwidth{1'000'000'000}}};
  EXPECT_EQ(spec.edits, expected);
}

TEST(ScenarioFabric, parts_are_read_in_order_with_what_joins_them) {
  const FabricSpec spec = read(
      "{parts: [{preset: dgx-h100-superpod, hosts: 8, network: rails}, {preset: gb200-nvl72, hosts: 36, "
      "gpus_per_rack: 64}], join: {bandwidth: 100 GB/s}, pxn: true}");
  ASSERT_EQ(spec.parts.size(), 2u);
  EXPECT_EQ(spec.preset, "");
  EXPECT_EQ(spec.parts[0].network, NetworkKind::rails);
  EXPECT_EQ(spec.parts[1].gpus_per_rack, 64);
  EXPECT_EQ(spec.join_bandwidth, Bandwidth{100'000'000'000});
  EXPECT_TRUE(spec.routing.pxn);
}

TEST(ScenarioFabric, an_imported_host_stands_in_place_of_a_preset_one_host_unless_said) {
  EXPECT_EQ(read("{import: machine.xml}").import_file, "machine.xml");
  EXPECT_EQ(read("{import: machine.xml}").hosts, 1);
  EXPECT_EQ(read("{import: machine.xml, hosts: 5, network: one-switch}").hosts, 5);
  EXPECT_THAT(fault_in("{import: machine.xml, preset: dgx-h100, hosts: 5}"), StartsWith("preset: "));
}

TEST(ScenarioFabric, wrong_keys_and_values_are_refused_with_file_line_and_key) {
  const std::string good = "preset: dgx-h100, hosts: 4";
  const auto also = [&](const std::string& more) { return fault_in("{" + good + ", " + more + "}"); };
  EXPECT_EQ(also("network: mesh"), "network: found 'mesh'; allowed: rails, superpod, one-switch");
  EXPECT_THAT(also("oversubscription: half"), StartsWith("oversubscription: found 'half'; allowed: "));
  EXPECT_THAT(also("oversubscription: -2"), StartsWith("oversubscription: found '-2'; allowed: "));
  EXPECT_THAT(also("gpus_per_rack: 0"), StartsWith("gpus_per_rack: found '0'; allowed: "));
  EXPECT_THAT(also("pcie_bandwidth: 63"), StartsWith("pcie_bandwidth: found '63'; allowed: a rate"));
  EXPECT_THAT(also("routing: random"), StartsWith("routing: found 'random'; allowed: "));
  EXPECT_THAT(also("pxn: maybe"), StartsWith("pxn: found 'maybe'; allowed: "));
  EXPECT_THAT(also("hash_seed: -1"), StartsWith("hash_seed: found '-1'; allowed: "));
  EXPECT_THAT(also("edit: []"), StartsWith("edit: found an unknown key; allowed: edits, "));
  EXPECT_THAT(also("rails: 8"), StartsWith("rails: found an unknown key; allowed: "));
  EXPECT_THAT(also("join: {bandwidth: 1 GB/s}"), StartsWith("join: found an unknown key; allowed: "));
  EXPECT_THAT(also("edits: {remove: nic}"), StartsWith("edits: found "));
  EXPECT_THAT(fault_in("{preset: dgx-h1000, hosts: 4}"),
              StartsWith("preset: found 'dgx-h1000'; allowed: dgx-h100, "));
  EXPECT_THAT(fault_in("{preset: dgx-h100}"), StartsWith("hosts: found nothing; "));
}

TEST(ScenarioFabric, wrong_edits_are_refused_with_their_number) {
  const auto edit = [](const std::string& text) {
    return fault_in("{preset: dgx-h100, hosts: 4, edits: [{remove: nic}, " + text + "]}");
  };
  EXPECT_THAT(edit("{remove: gpu}"), StartsWith("edits.1.remove: found 'gpu'; allowed: "));
  EXPECT_THAT(edit("{remove: pcie}"), StartsWith("edits.1.remove: found 'pcie'; allowed: "));
  EXPECT_THAT(edit("{degrade: leaf, factor: 0.5}"), StartsWith("edits.1.degrade: found 'leaf'; allowed: "));
  EXPECT_THAT(edit("{disable: nvlink}"), StartsWith("edits.1.disable: found 'nvlink'; allowed: "));
  EXPECT_EQ(edit("{swap: nic}"), "edits.1.swap: found 'nic'; allowed: nics");
  EXPECT_EQ(edit("{cut: domains, size: 4}"), "edits.1.cut: found 'domains'; allowed: domain");
  EXPECT_THAT(edit("{hosts: 0}"), StartsWith("edits.1: found "));
  EXPECT_THAT(edit("{remove: nic, cut: domain}"), StartsWith("edits.1.cut: found "));
  EXPECT_THAT(edit("{remove: nic, host: 0}"),
              StartsWith("edits.1.host: found an unknown key; allowed: hosts"));
  EXPECT_THAT(edit("{remove: nic, hosts: [0, 0]}"), StartsWith("edits.1.hosts"));
  EXPECT_THAT(edit("{remove: nic, gpus: x}"), StartsWith("edits.1.gpus: found 'x'; allowed: "));
  EXPECT_THAT(edit("{remove: nvlink, wires: 0}"), StartsWith("edits.1.wires: found '0'; allowed: "));
  EXPECT_THAT(edit("{degrade: nic, factor: slow}"), StartsWith("edits.1.factor: found 'slow'; allowed: "));
  EXPECT_THAT(edit("{degrade: nic, bandwidth: 25}"), StartsWith("edits.1.bandwidth: found '25'; allowed: "));
  EXPECT_EQ(edit("{remove: nic, hosts: [0, 1]}"), "elsewhere: ");
}

TEST(ScenarioFabric, wrong_parts_are_refused_with_their_number) {
  const auto parts = [](const std::string& text, const std::string& rest) {
    return fault_in("{parts: [{preset: dgx-h100, hosts: 1}, " + text + "]" + rest + "}");
  };
  const std::string join = ", join: {bandwidth: 1 GB/s}", good = "{preset: dgx-b200, hosts: 1}";
  EXPECT_EQ(parts(good, join), "elsewhere: ");
  EXPECT_THAT(parts(good, ""), StartsWith("join: found nothing; "));
  EXPECT_THAT(parts(good, ", join: {}"), StartsWith("join"));
  EXPECT_THAT(parts(good, ", join: {bandwidth: 1 GB}"),
              StartsWith("join.bandwidth: found '1 GB'; allowed: "));
  EXPECT_THAT(parts(good, join + ", hosts: 2"), StartsWith("hosts: found an unknown key; "));
  EXPECT_THAT(parts("{preset: dgx-b200}", join), StartsWith("parts.1.hosts: found nothing; "));
  EXPECT_THAT(parts("{preset: dgx-b200, hosts: 1, pxn: true}", join),
              StartsWith("parts.1.pxn: found an unknown key; "));
  EXPECT_THAT(parts("{preset: dgx-b200, hosts: 1, edits: [{remove: nic}]}", join),
              StartsWith("parts.1.edits: found an unknown key; "));
}

RC_GTEST_PROP(ScenarioFabric, reading_what_is_written_gives_an_equal_fabric, ()) {
  const FabricSpec spec = (*arbitrary_scenario()).fabric;
  const FabricSpec again = read(fabric_yaml(spec));
  RC_ASSERT(again == spec);
  RC_ASSERT(fabric_yaml(again) == fabric_yaml(spec));
}

}  // namespace
}  // namespace isthmus::scenario_fabric_test
