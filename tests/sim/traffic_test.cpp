#include "sim/traffic.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::sim {
namespace {

using Edit = FabricEdit;

TrafficSpec flows(std::vector<TrafficFlow> list) {
  TrafficSpec spec;
  spec.pattern = TrafficPattern::flows;
  spec.flows = std::move(list);
  return spec;
}

TrafficSpec among(TrafficPattern pattern, int gpus) {
  TrafficSpec spec;
  spec.pattern = pattern;
  spec.gpus.resize(to_size(gpus));
  std::iota(spec.gpus.begin(), spec.gpus.end(), 0);
  return spec;
}

TrafficPrediction predict(const FabricSpec& fabric, const TrafficSpec& spec,
                          const Calibration& calibration = wire_only()) {
  return predict_traffic(Fabric(fabric), spec, calibration);
}

double rate(const TrafficPrediction& prediction) {
  return static_cast<double>(prediction.rate().value) * 1e-9;
}
double slowest(const TrafficPrediction& prediction) {
  return static_cast<double>(prediction.slowest_rate.value) * 1e-9;
}

FabricSpec edited(FabricSpec spec, Edit edit) {
  spec.edits.push_back(std::move(edit));
  return spec;
}

std::vector<TrafficFlow> random_flows(int gpus) {
  std::vector<TrafficFlow> list;
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  for (std::size_t i = 0; i < count; ++i) {
    const int from = *rc::gen::inRange(0, gpus);
    const int to = (from + *rc::gen::inRange(1, gpus)) % gpus;
    list.push_back({from, to, Bytes{*rc::gen::inRange<std::int64_t>(1, 1000) * 1'000'000}});
  }
  return list;
}

RC_GTEST_PROP(TrafficSimulation, halving_all_efficiencies_doubles_the_time, ()) {
  const Fabric fabric(FabricSpec{"dgx-h100", 2});
  const TrafficSpec spec = flows(random_flows(16));
  Calibration half = wire_only();
  for (Constant* each :
       {&half.nvlink_efficiency, &half.nic_efficiency, &half.pcie_efficiency, &half.uplink_efficiency})
    each->value = 0.5;
  const double whole = seconds(predict_traffic(fabric, spec, wire_only()).time);
  RC_ASSERT(std::abs(seconds(predict_traffic(fabric, spec, half).time) / whole - 2) < 1e-6);
}

RC_GTEST_PROP(TrafficSimulation, does_not_depend_on_the_order_of_flows, ()) {
  const Fabric fabric(FabricSpec{"dgx-h100", 2});
  std::vector<TrafficFlow> list = random_flows(16);
  const Duration time = predict_traffic(fabric, flows(list), wire_only()).time;
  std::reverse(list.begin(), list.end());
  RC_ASSERT(std::abs(seconds(predict_traffic(fabric, flows(list), wire_only()).time) / seconds(time) - 1) <
            1e-6);
}

RC_GTEST_PROP(TrafficSimulation, does_not_depend_on_the_numbers_of_hosts, ()) {
  const Fabric fabric(FabricSpec{"dgx-h100", 2});
  std::vector<TrafficFlow> list = random_flows(16);
  const Duration time = predict_traffic(fabric, flows(list), wire_only()).time;
  for (TrafficFlow& flow : list) {
    flow.from = (flow.from + 8) % 16;
    flow.to = (flow.to + 8) % 16;
  }
  RC_ASSERT(std::abs(seconds(predict_traffic(fabric, flows(list), wire_only()).time) / seconds(time) - 1) <
            1e-6);
}

/// No port carries its bytes faster than it can: an oracle that knows nothing of fairness.
RC_GTEST_PROP(TrafficSimulation, never_beats_a_port_of_a_gpu, ()) {
  const std::vector<TrafficFlow> list = random_flows(16);
  std::vector<double> network_in(16), network_out(16), nvlink_in(16), nvlink_out(16);
  for (const TrafficFlow& flow : list) {
    const bool inside = flow.from / 8 == flow.to / 8;
    const double gigabytes = static_cast<double>(flow.bytes->value) * 1e-9;
    (inside ? nvlink_out : network_out)[to_size(flow.from)] += gigabytes;
    (inside ? nvlink_in : network_in)[to_size(flow.to)] += gigabytes;
  }
  double least = 0;
  for (std::size_t gpu = 0; gpu < 16; ++gpu) {
    least = std::max(
        {least, network_in[gpu] / 50, network_out[gpu] / 50, nvlink_in[gpu] / 450, nvlink_out[gpu] / 450});
  }
  RC_ASSERT(seconds(predict({"dgx-h100", 2}, flows(list)).time) >= least * (1 - 1e-9));
}

TEST(TrafficSimulation, eight_senders_share_the_receivers_nic) {
  std::vector<TrafficFlow> list;
  for (int sender = 0; sender < 8; ++sender) list.push_back({sender, 8});
  const TrafficPrediction result = predict({"dgx-h100", 2}, flows(list));
  EXPECT_NEAR(rate(result), 50, 1e-6);
  EXPECT_NEAR(slowest(result), 6.25, 1e-6);
  EXPECT_EQ(result.binding, "NIC into GPU 0 on host 1");
}

TEST(TrafficSimulation, seven_senders_share_the_receivers_nvlink) {
  std::vector<TrafficFlow> list;
  for (int sender = 1; sender < 8; ++sender) list.push_back({sender, 0});
  const TrafficPrediction result = predict({"dgx-h100", 1}, flows(list));
  EXPECT_NEAR(rate(result), 450, 1e-5);
  EXPECT_NEAR(slowest(result), 450.0 / 7, 1e-6);
}

TEST(TrafficSimulation, two_to_one_leaves_halve_what_crosses_units_and_nothing_else) {
  FabricSpec fabric{"dgx-h100-superpod", 64};
  std::vector<TrafficFlow> across, within;
  for (int host = 0; host < 32; ++host) {
    across.push_back({8 * host, 8 * (host + 32)});
    within.push_back({8 * host, 8 * ((host + 1) % 32)});
  }
  EXPECT_NEAR(slowest(predict(fabric, flows(across))), 50, 1e-6);
  fabric.oversubscription = 2;
  EXPECT_NEAR(slowest(predict(fabric, flows(across))), 25, 1e-6);
  EXPECT_NEAR(slowest(predict(fabric, flows(within))), 50, 1e-6);
}

TEST(TrafficSimulation, a_leaf_with_fourteen_uplinks_gives_each_tray_its_share) {
  const Edit edit{Edit::Action::remove, Edit::Subject::uplink, {}, {}, {0}, 4};
  std::vector<TrafficFlow> list;
  for (int tray = 0; tray < 18; ++tray) list.push_back({4 * tray, 72 + 4 * tray});
  EXPECT_NEAR(slowest(predict({"gb200-nvl72", 36}, flows(list))), 50, 1e-6);
  EXPECT_NEAR(slowest(predict(edited({"gb200-nvl72", 36}, edit), flows(list))), 700.0 / 18, 1e-6);
}

TEST(TrafficSimulation, a_lost_spine_costs_every_leaf_its_wires) {
  const auto spine = [](int number) {
    return Edit{Edit::Action::remove, Edit::Subject::spine, {}, {}, {number}};
  };
  std::vector<TrafficFlow> racks, units;
  for (int tray = 0; tray < 18; ++tray) racks.push_back({4 * tray, 72 + 4 * tray});
  for (int host = 0; host < 32; ++host) units.push_back({8 * host, 8 * (host + 32)});
  EXPECT_NEAR(slowest(predict(edited({"gb200-nvl72", 144}, spine(2)), flows(racks))), 50 * 16.0 / 18, 1e-6);
  EXPECT_NEAR(slowest(predict(edited({"dgx-h100-superpod", 128}, spine(9)), flows(units))), 50 * 0.9375,
              1e-6);
}

TEST(TrafficSimulation, a_pair_moved_across_sockets_goes_as_fast_as_they_are_joined) {
  const Edit swap{Edit::Action::swap, Edit::Subject::nics, {0}, {0, 4}};
  EXPECT_NEAR(rate(predict(edited({"dgx-h100", 2}, swap), flows({{0, 8}}))), 22, 1e-6);
  EXPECT_NEAR(rate(predict(edited({"dgx-h100", 2}, swap), flows({{1, 8}}))), 50, 1e-6);
}

TEST(TrafficSimulation, a_lost_nic_leaves_its_gpu_a_share_of_the_others) {
  FabricSpec fabric = edited({"dgx-h100", 2}, Edit{Edit::Action::remove, Edit::Subject::nic, {0}, {0}});
  fabric.routing.pxn = true;
  // All eight GPUs to every rail but the lost one, alike: the seven NICs left are full.
  std::vector<TrafficFlow> list;
  for (int gpu = 0; gpu < 8; ++gpu) {
    for (int rail = 1; rail < 8; ++rail) list.push_back({gpu, 8 + rail});
  }
  EXPECT_NEAR(rate(predict(fabric, flows(list))), 350, 1e-4);
}

TEST(TrafficSimulation, without_gpudirect_a_switchs_uplink_carries_two_streams_each_way) {
  const FabricSpec fabric = edited({"dgx-h100", 2}, Edit{Edit::Action::disable, Edit::Subject::gpudirect});
  const TrafficPrediction one_way = predict(fabric, flows({{0, 8}}));
  EXPECT_NEAR(rate(one_way), 50, 1e-6);
  const TrafficPrediction both_ways = predict(fabric, flows({{0, 8}, {8, 0}}));
  EXPECT_NEAR(slowest(both_ways), 31.5, 1e-6);
}

TEST(TrafficSimulation, half_a_rail_takes_half_a_nic_from_the_host) {
  const Edit edit{Edit::Action::degrade, Edit::Subject::nic, {}, {3}, {}, {}, 0.5};
  std::vector<TrafficFlow> list;
  for (int gpu = 0; gpu < 8; ++gpu) list.push_back({gpu, gpu + 8, Bytes{gpu == 3 ? 25'000'000 : 50'000'000}});
  EXPECT_NEAR(rate(predict(edited({"dgx-h100", 2}, edit), flows(list))), 375, 1e-4);
}

TEST(TrafficSimulation, lost_nvlink_chips_and_wires_lower_ports_as_counted) {
  const auto port = [](const FabricSpec& fabric) { return rate(predict(fabric, flows({{0, 1}}))); };
  const auto chip = [](int number) {
    return Edit{Edit::Action::remove, Edit::Subject::nvswitch, {}, {}, {number}};
  };
  EXPECT_NEAR(port({"dgx-h100", 1}), 450, 1e-5);
  EXPECT_NEAR(port(edited({"dgx-h100", 1}, chip(0))), 350, 1e-5);
  EXPECT_NEAR(port(edited({"dgx-h100", 1}, chip(1))), 325, 1e-5);
  EXPECT_NEAR(port(edited({"gb200-nvl72", 18}, chip(5))), 850, 1e-5);
  EXPECT_NEAR(port(edited(edited({"gb200-nvl72", 18}, chip(4)), chip(5))), 800, 1e-5);
  const Edit wire{Edit::Action::remove, Edit::Subject::nvlink, {}, {0}, {}, 1};
  EXPECT_NEAR(port(edited({"dgx-h100", 1}, wire)), 425, 1e-5);
}

TEST(TrafficSimulation, bus_bandwidth_of_healthy_patterns_is_that_of_the_ports) {
  EXPECT_NEAR(rate(predict({"dgx-h100", 1}, among(TrafficPattern::all_reduce, 8))), 450, 1e-4);
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, among(TrafficPattern::all_reduce, 16))), 400, 1e-4);
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, among(TrafficPattern::shift, 16))), 50, 1e-6);
  EXPECT_NEAR(rate(predict({"dgx-h100", 1}, among(TrafficPattern::all_to_all, 8))), 450, 1e-4);
  // One NIC per GPU: its rate x (n - 1) / (n - 8) for what stays inside the host.
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, among(TrafficPattern::all_to_all, 16))), 50.0 * 15 / 8, 1e-4);
}

TEST(TrafficSimulation, a_ring_goes_at_the_pace_of_its_slowest_hop) {
  TrafficSpec spec;
  spec.pattern = TrafficPattern::rings;
  spec.rings = {{0, 1, 2, 8}};
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, spec)), 50, 1e-6);
  spec.rings = {{0, 1, 2, 3}, {3, 2, 1, 0}};
  EXPECT_NEAR(rate(predict({"dgx-h100", 1}, spec)), 450, 1e-4);
}

TEST(TrafficSimulation, a_ring_may_cross_a_link_thousands_of_times) {
  FabricSpec fabric;
  fabric.parts = {{"dgx-h100", 320}, {"dgx-h100", 320}};
  fabric.join_bandwidth = gigabytes_per_second(2560);
  TrafficSpec spec;
  spec.pattern = TrafficPattern::rings;
  spec.rings.emplace_back();
  for (int i = 0; i < 2560; ++i) spec.rings[0].insert(spec.rings[0].end(), {i, 2560 + i});
  EXPECT_NEAR(rate(predict(fabric, spec)), 1, 1e-3);
}

TEST(TrafficSimulation, channels_cap_flows_of_the_network_only) {
  Calibration calibration = wire_only();
  calibration.channel_bandwidth.value = 20e9;
  TrafficSpec spec = flows({{0, 8}});
  spec.channels = 1;
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, spec, calibration)), 20, 1e-6);
  EXPECT_EQ(predict({"dgx-h100", 2}, spec, calibration).binding, "1 channel of GPU 0 to GPU 8");
  spec.channels = 3;
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, spec, calibration)), 50, 1e-6);
  spec.channels = 1;
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, spec)), 50, 1e-6);
  spec.flows = {{0, 1}};
  EXPECT_NEAR(rate(predict({"dgx-h100", 2}, spec, calibration)), 450, 1e-5);
}

TEST(TrafficSimulation, nccls_channels_follow_the_ranks_of_the_pattern) {
  Calibration calibration = wire_only();
  calibration.channel_bandwidth.value = 20e9;
  TrafficSpec spec = among(TrafficPattern::shift, 128);
  spec.nccl_channels = true;
  EXPECT_EQ(predict({"dgx-h100", 16}, spec, calibration).channels, 1U);
  EXPECT_NEAR(rate(predict({"dgx-h100", 16}, spec, calibration)), 20, 1e-6);
  spec.nccl = {{"NCCL_NCHANNELS_PER_NET_PEER", 4}};
  EXPECT_NEAR(rate(predict({"dgx-h100", 16}, spec, calibration)), 50, 1e-6);
}

}  // namespace
}  // namespace isthmus::sim
