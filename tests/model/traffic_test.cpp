#include "model/traffic.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/refit.hpp"
#include "model/traffic_channels.hpp"
#include "model/traffic_rules.hpp"
#include "model/validation.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::traffic_test {
namespace {

const std::string head = "name: t\nfabric: {preset: dgx-h100, hosts: 2}\ntraffic:\n";

Scenario parsed(const std::string& traffic, const std::string& before = head) {
  return parse_scenario(before + traffic, "t.yaml");
}

std::string fault_of(const std::string& traffic, const std::string& before = head) {
  try {
    raise_first(traffic_faults(parsed(traffic, before)));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::vector<int> random_gpus() {
  std::vector<int> gpus;
  for (int gpu = 0; gpu < 16; ++gpu) {
    if (*rc::gen::arbitrary<bool>() || gpu >= 14) gpus.push_back(gpu);
  }
  return gpus;
}

TrafficSpec random_traffic() {
  TrafficSpec spec;
  spec.pattern = static_cast<TrafficPattern>(*rc::gen::inRange(0, 6));
  spec.bytes = Bytes{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)};
  const auto flow = [] {
    const int from = *rc::gen::inRange(0, 16);
    return TrafficFlow{from, (from + *rc::gen::inRange(1, 16)) % 16};
  };
  if (spec.pattern == TrafficPattern::pair) {
    spec.flows.push_back(flow());
  } else if (spec.pattern == TrafficPattern::flows) {
    spec.flows = {flow(), flow()};
    if (*rc::gen::arbitrary<bool>()) spec.flows[1].bytes = Bytes{4096};
  } else if (spec.pattern == TrafficPattern::rings) {
    spec.rings = {random_gpus(), {3, 1, 2}};
  } else {
    spec.gpus = random_gpus();
  }
  if (*rc::gen::arbitrary<bool>()) spec.channels = *rc::gen::inRange(1, 65);
  if (!spec.channels && *rc::gen::arbitrary<bool>()) {
    spec.nccl_channels = true;
    spec.nccl = {{"NCCL_MAX_CTAS", 16},
                 {"NCCL_NCHANNELS_PER_NET_PEER", *rc::gen::inRange<std::int64_t>(1, 65)}};
  }
  if (*rc::gen::arbitrary<bool>()) {
    spec.baseline = {{"fabric.edits", "none"}, {"traffic.shift", "{gpus: [0-3, 8]}"}, {"fabric.hosts", "4"}};
  }
  if (*rc::gen::arbitrary<bool>()) spec.expected = 0.3125;
  spec.published = {{"1", 0.25, 0.5, "93 GB/s", "", "slow: \"a third\"", "a report, 3"},
                    {"2", {}, {}, "", "", "x", "y"}};
  return spec;
}

RC_GTEST_PROP(Traffic, is_read_back_as_it_was_written, ()) {
  Scenario scenario = parsed("  pair: {from: 0, to: 8}\n");
  scenario.traffic = random_traffic();
  const std::string text = to_yaml(scenario);
  RC_ASSERT(same_content(parse_scenario(text, "t.yaml"), scenario));
}

TEST(Traffic, incidents_are_read_and_written_back) {
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(project_folder() / "scenarios/incidents")) {
    const Scenario scenario = read_scenario(entry.path());
    EXPECT_TRUE(scenario.traffic) << entry.path();
    EXPECT_TRUE(same_content(scenario, parse_scenario(to_yaml(scenario), entry.path()))) << entry.path();
    ++read;
  }
  EXPECT_GE(read, 20U);
}

TEST(Traffic, keys_that_do_not_go_together_are_refused_and_alone_they_pass) {
  const std::string pair = "  pair: {from: 0, to: 8}\n";
  EXPECT_EQ(fault_of(pair), "");
  EXPECT_EQ(fault_of(pair + "  shift: {gpus: 0-3}\n"),
            "t.yaml:5: traffic.shift: found a second pattern; allowed: one pattern per scenario");
  EXPECT_EQ(fault_of("  bytes: 1 GB\n"),
            "t.yaml:3: traffic: found no pattern; allowed: one of pair, flows, all-to-all, shift, "
            "all-reduce, rings");
  EXPECT_EQ(fault_of("  pair: {from: 8, to: 8}\n"),
            "t.yaml:4: traffic.pair.to: found 8, as from; allowed: another GPU");
  EXPECT_EQ(fault_of("  shift: {gpus: 3}\n"),
            "t.yaml:4: traffic.shift.gpus: found one GPU; allowed: at least two GPUs");
  EXPECT_EQ(fault_of("  rings: [[0, 1], 5]\n").substr(0, 50),
            "t.yaml:4: traffic.rings.1: found a ring of one GPU");
  EXPECT_EQ(fault_of(pair + "  nccl: {NCCL_MAX_CTAS: 4}\n"),
            "t.yaml:5: traffic.nccl: found these settings; allowed: them with channels: nccl only");
  EXPECT_EQ(fault_of(pair + "  channels: nccl\n  nccl: {NCCL_MAX_CTAS: 4}\n"), "");
  EXPECT_EQ(fault_of(pair + "refit: {streams: 2}\n"),
            "t.yaml:5: refit: found this key beside traffic; allowed: it without traffic (published: below "
            "traffic)");
}

TEST(Traffic, values_out_of_range_are_refused) {
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 16}\n"),
            "t.yaml:3: traffic: found GPU 16; allowed: GPUs of the fabric: 0 to 15");
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  bytes: 4 EB\n").substr(0, 30),
            "t.yaml:5: traffic.bytes: found");
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  bytes: 10000 TB\n").substr(0, 30),
            "t.yaml:5: traffic.bytes: found");
  EXPECT_EQ(
      fault_of("  pair: {from: 0, to: 8}\n  bytes: 8000000 TiB\n"),
      "t.yaml:5: traffic.bytes: found '8000000 TiB'; allowed: a size above zero with its unit, such as 1.7 "
      "GB or 2 GiB, at most 2^60 bytes");
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  channels: many\n"),
            "t.yaml:5: traffic.channels: found 'many'; allowed: nccl, or a number of channels");
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  channels: 65\n").substr(0, 36),
            "t.yaml:5: traffic.channels: found '6");
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  baseline: {calibration: x, name: y}\n"),
            "t.yaml:5: traffic.baseline: found the key 'name'; allowed: dotted keys below fabric, traffic or "
            "calibration with their values: {fabric.edits: none}");
}

TEST(Traffic, values_of_the_baseline_stand_on_one_line) {
  const std::string before = "  pair: {from: 0, to: 8}\n  baseline: {fabric.hosts: ";
  EXPECT_EQ(fault_of(before + "\"3\\n\"}\n").substr(0, 57),
            "t.yaml:5: traffic.baseline: found a value of several line");
  EXPECT_EQ(fault_of(before + "3}\n"), "");
}

TEST(Traffic, a_chunk_above_the_slot_is_refused_with_the_reason) {
  const std::string before = "  pair: {from: 0, to: 8}\n  channels: nccl\n  nccl: {NCCL_CHUNK_SIZE: ";
  EXPECT_EQ(
      fault_of(before + "1048576}\n"),
      "t.yaml:6: traffic.nccl.NCCL_CHUNK_SIZE: found 1048576 bytes, more than a slot of the "
      "connection's buffer: the data that arrives is wrong; allowed: at most NCCL_BUFFSIZE / 8 = 524288");
  EXPECT_EQ(fault_of(before + "524288}\n"), "");
  EXPECT_EQ(fault_of(before + "1048576, NCCL_BUFFSIZE: 8388608}\n"), "");
}

TEST(Traffic, places_that_no_way_leads_to_are_refused) {
  const std::string before =
      "fabric: {preset: dgx-h100, hosts: 2, edits: [{remove: nic, hosts: 1}]}\ntraffic:\n";
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n", before).substr(0, 58),
            "t.yaml:1: fabric: found no way from GPU 0 on host 0 to GPU");
  EXPECT_EQ(fault_of("  pair: {from: 8, to: 9}\n", before), "");
}

TEST(Traffic, the_twin_has_the_baselines_values_or_no_edits) {
  const std::string edited =
      "fabric: {preset: dgx-h100, hosts: 2, edits: [{disable: gpudirect}]}\ntraffic:\n  pair: {from: 0, to: "
      "8}\n";
  EXPECT_FALSE(healthy_twin(parsed("  pair: {from: 0, to: 8}\n")));
  const std::optional<Scenario> without_edits = healthy_twin(parsed("", edited));
  ASSERT_TRUE(without_edits);
  EXPECT_TRUE(without_edits->fabric.edits.empty());
  EXPECT_EQ(without_edits->fabric.hosts, 2);
  const auto larger = healthy_twin(parsed("  baseline: {fabric.hosts: 4, traffic.pair.to: 31}\n", edited));
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->fabric.edits.size(), 1U);
  EXPECT_EQ(larger->fabric.hosts, 4);
  EXPECT_EQ(larger->traffic->flows, (std::vector<TrafficFlow>{{0, 31}}));
  EXPECT_EQ(fault_of("  baseline: {fabric.preset: dgx}\n", edited).substr(0, 58),
            "t.yaml:4: traffic.baseline: fabric.preset: found 'dgx'; al");
  EXPECT_EQ(fault_of("  baseline: {fabric.hosts: none}\n", edited),
            "t.yaml:4: traffic.baseline: found none for fabric.hosts; allowed: none for fabric.edits, "
            "traffic.channels and traffic.nccl");
  EXPECT_EQ(fault_of("  baseline: {fabric.hosts: 1}\n", edited),
            "t.yaml:4: traffic.baseline: found GPU 8; allowed: GPUs of the fabric: 0 to 7");
}

TEST(Traffic, ratios_need_something_to_compare_with) {
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  expected: 0.5\n"),
            "t.yaml:3: traffic: found ratios to compare with, but nothing that is edited; allowed: "
            "fabric.edits, or a baseline that differs");
  EXPECT_EQ(fault_of("  pair: {from: 0, to: 8}\n  expected: 0.5\n  baseline: {traffic.bytes: 2 GB}\n"), "");
}

TEST(Traffic, has_no_plan) {
  try {
    resolve(parsed("  pair: {from: 0, to: 8}\n"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "t.yaml:3: traffic: found plain traffic, which has no plan and no bound; allowed: a refit or "
        "tensors; traffic goes to isthmus simulate");
  }
}

TEST(Traffic, validation_lists_what_is_wrong_with_it) {
  Input input;
  input.scenario = parsed("  pair: {from: 0, to: 16}\n  channels: nccl\n  nccl: {NCCL_MAX_CTAS: 65}\n");
  EXPECT_EQ(validate(input).violations.size(), 2U);
  input.scenario = parsed("  pair: {from: 0, to: 15}\n");
  EXPECT_TRUE(validate(input).valid());
}

/// The published table of docs/nccl-rules.md, in machines of 8 GPUs (T = 16).
TEST(TrafficChannels, per_peer_follow_nccls_rule_for_the_ranks) {
  const Fabric fabric(FabricSpec{"dgx-h100", 32});
  const auto of = [&](std::uint32_t ranks, const NcclSettings& settings) {
    std::vector<GpuId> gpus;
    for (std::uint32_t gpu = 0; gpu < ranks; ++gpu) gpus.push_back({gpu});
    return nccl_channels_per_peer(fabric, gpus, settings);
  };
  EXPECT_EQ(of(16, {}), 4U);
  EXPECT_EQ(of(32, {}), 4U);
  EXPECT_EQ(of(64, {}), 2U);
  EXPECT_EQ(of(128, {}), 1U);
  EXPECT_EQ(of(256, {}), 1U);
  NcclSettings four;
  four.channels_per_network_peer = 4;
  EXPECT_EQ(of(256, four), 4U);
}

TEST(TrafficStreams, of_an_all_reduce_have_one_ring_per_nic) {
  const Fabric fabric(FabricSpec{"dgx-h100", 3});
  TrafficSpec spec;
  spec.pattern = TrafficPattern::all_reduce;
  for (int gpu = 0; gpu < 24; ++gpu) spec.gpus.push_back(gpu);
  spec.bytes = Bytes{96};
  const std::vector<TrafficStream> rings = traffic_streams(fabric, spec);
  ASSERT_EQ(rings.size(), 8U);
  for (std::uint32_t r = 0; r < 8; ++r) {
    EXPECT_EQ(rings[r].bytes, Bytes{23});  // 2 x 23 / 24 x 96 / 8
    EXPECT_TRUE(rings[r].network);
    for (std::uint32_t gpu = 0; gpu < 24; ++gpu) {
      const auto crossed = std::count(rings[r].links.begin(), rings[r].links.end(), *fabric.nic_out({gpu}));
      EXPECT_EQ(crossed, gpu % 8 == r) << "ring " << r << ", GPU " << gpu;
    }
  }
  spec.gpus = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(traffic_streams(fabric, spec).size(), 1U);
  EXPECT_FALSE(traffic_streams(fabric, spec).front().network);
}

}  // namespace
}  // namespace isthmus::traffic_test
