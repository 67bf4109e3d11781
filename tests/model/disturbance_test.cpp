#include "model/disturbance.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/fabric.hpp"
#include "model/input_fault.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::disturbance_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> names_of(const Fabric& fabric, std::string_view subject) {
  std::vector<std::string> names;
  for (const LinkId link : affected(fabric, *parse_fault_subject(subject)).links) {
    names.push_back(fabric.links()[link.index()].name);
  }
  return names;
}

TEST(Disturbance, of_a_nic_is_both_of_its_directions) {
  const Fabric fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  EXPECT_THAT(names_of(fabric, "nic:1.3"),
              ::testing::UnorderedElementsAre("NIC out of GPU 3 on host 1", "NIC into GPU 3 on host 1"));
  EXPECT_EQ(names_of(fabric, "link:NIC into GPU 3 on host 1").size(), 1U);
}

TEST(Disturbance, of_a_gpu_takes_its_nvlink_and_its_memory_and_leaves_the_nic) {
  const Fabric fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  const Affected found = affected(fabric, *parse_fault_subject("gpu:1.0"));
  EXPECT_EQ(found.gpus, std::vector{GpuId{8}});
  const auto has = [&](std::optional<LinkId> link) {
    return std::find(found.links.begin(), found.links.end(), *link) != found.links.end();
  };
  EXPECT_TRUE(has(fabric.nvlink_out(GpuId{8})) && has(fabric.nvlink_in(GpuId{8})));
  EXPECT_FALSE(has(fabric.nic_out(GpuId{8})));
}

TEST(Disturbance, of_a_host_takes_all_of_its_gpus_and_nics) {
  const Fabric fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  const Affected found = affected(fabric, *parse_fault_subject("host:0"));
  EXPECT_EQ(found.gpus.size(), 8U);
  for (std::uint32_t g = 0; g < 16; ++g) {
    const bool has =
        std::find(found.links.begin(), found.links.end(), *fabric.nic_in({g})) != found.links.end();
    EXPECT_EQ(has, g < 8);
  }
}

TEST(Disturbance, of_a_leaf_takes_the_nics_below_it_and_its_up_links) {
  const Fabric fabric({"dgx-h100-superpod", 64, std::nullopt, std::nullopt});
  const std::vector<std::string> names = names_of(fabric, "leaf:3");
  EXPECT_EQ(std::count_if(names.begin(), names.end(),
                          [](const std::string& name) { return name.find("NIC") != std::string::npos; }),
            64);
  EXPECT_EQ(names.size(), 66U);  // and the leaf's links up and down
}

TEST(Disturbance, subjects_read_back_and_other_texts_are_refused) {
  for (const std::string text :
       {"nic:3.1", "gpu:0.0", "host:12", "leaf:5", "link:NIC out of GPU 1 on host 3"}) {
    EXPECT_EQ(to_string(*parse_fault_subject(text)), text);
  }
  for (const std::string text : {"", "nic", "nic:", "nic:3", "nic:3.", "nic:-1.0", "host:3.1",
                                 "link:", "spine:1", "host:01", "nic:1.2.3", "host:99999999"}) {
    EXPECT_FALSE(parse_fault_subject(text)) << text;
  }
}

std::string with(const std::string& lines) { return bare_tensor + lines; }

TEST(Disturbance, keys_read_back_as_they_were_written) {
  const std::string text = with(
      "background:\n"
      "  - {on: nic, hosts: 0-1, gpus: [0, 3], direction: in, share: 0.25, flows: 4}\n"
      "  - {on: nvlink, rate: 100 GB/s}\n"
      "  - {on: memory, share: 1}\n"
      "  - {on: sm, share: 0.5}\n"
      "faults:\n"
      "  - {at: 2 ms, what: nic:0.1, until: 5 ms}\n"
      "  - {at: 0 s, what: 'link:NIC out of GPU 1 on host 0', change: 0.5}\n"
      "failed_steps: {policy: reroute, timeout: 30 ms}\n");
  const Scenario scenario = parsed(text);
  const Disturbances& read = scenario.disturbances;
  ASSERT_EQ(read.background.size(), 4U);
  EXPECT_EQ(read.background[0].flows, 4);
  ASSERT_EQ(read.faults.size(), 2U);
  EXPECT_EQ(read.faults[0].share, 0);
  EXPECT_EQ(read.failed_steps.timeout.value, 30'000'000'000);
  EXPECT_EQ(parsed(to_yaml(scenario)).disturbances, read);
}

TEST(Disturbance, what_a_key_cannot_mean_is_refused_with_what_is_allowed) {
  EXPECT_THAT(fault_of(with("background: [{on: nic}]\n")), HasSubstr("background.0.share"));
  EXPECT_THAT(fault_of(with("background: [{on: nic, share: 1.5}]\n")), HasSubstr("a share from 0 to 1"));
  EXPECT_THAT(fault_of(with("background: [{on: sm, share: 1}]\n")), HasSubstr("a share from 0 to 0.99"));
  EXPECT_THAT(fault_of(with("background: [{on: sm, rate: 1 GB/s}]\n")), HasSubstr("allowed: share"));
  EXPECT_THAT(fault_of(with("background: [{on: disk, share: 1}]\n")), HasSubstr("nic, nvlink, memory, sm"));
  EXPECT_THAT(fault_of(with("faults: [{at: 1 ms, what: nic}]\n")), HasSubstr("nic:HOST.GPU"));
  EXPECT_THAT(fault_of(with("faults: [{at: 1 ms, what: host:0, change: 0.0001}]\n")),
              HasSubstr("0.001 to 1"));
  EXPECT_THAT(fault_of(with("faults: [{at: 2 ms, what: host:0, until: 2 ms}]\n")),
              HasSubstr("a time after at"));
  EXPECT_THAT(fault_of(with("failed_steps: {policy: wait}\n")), HasSubstr("stop, retry or reroute"));
}

TEST(Disturbance, what_the_fabric_lacks_is_listed_at_its_key) {
  const Scenario scenario =
      parsed(with("background: [{on: nic, side: train, share: 1}, {on: nic, gpus: 9, share: 1}]\n"
                  "faults: [{at: 1 ms, what: host:7}, {at: 1 ms, what: nic:0.9}, {at: 1 ms, what: leaf:4}, "
                  "{at: 1 ms, what: 'link:NIC out of GPU 1'}]\n"));
  const Fabric fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  std::vector<std::string> keys;
  for (const InputFault& fault : disturbance_faults(scenario, fabric)) keys.push_back(fault.where.key);
  EXPECT_THAT(keys, ::testing::ElementsAre("background.0.side", "background.1.gpus", "faults.0.what",
                                           "faults.1.what", "faults.2.what", "faults.3.what"));
}

}  // namespace
}  // namespace isthmus::disturbance_test
