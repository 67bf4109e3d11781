// Runs under faults and background: what changes nothing, what is conserved, and a naive event loop.

#include "sim/run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "sim/arrival.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/fault_case.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::sim {
namespace {

Calibration h100() { return read_calibration("h100-ib400", project_folder() / "scenarios"); }

Disturbances under(std::vector<MachineFault> faults, FailedSteps rule, Duration timeout = {40'000'000}) {
  return {{}, std::move(faults), {rule, timeout}};
}

MachineFault nic_fault(std::uint32_t host, std::uint32_t gpu, double share, Duration at = {}) {
  return {at, {FaultSubject::Kind::nic, host, gpu, {}}, share, std::nullopt};
}

class RunShards : public testing::TestWithParam<std::uint64_t> {
 protected:
  /// Calls for each policy's plan of random refits: (seed, refit, plan, operations).
  template <class Check>
  void for_each_plan(std::uint64_t count, Check&& check) {
    const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), count);
    for (std::uint64_t seed = begin; seed < end; ++seed) {
      const Refit refit = cases::fault_refit(seed);
      for (const Plan& plan : isthmus::test::plans_of(refit)) {
        SCOPED_TRACE(plan.policy + ", seed " + std::to_string(seed));
        check(seed, refit, plan, expand(refit, plan));
        if (HasFatalFailure()) return;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Run, RunShards, testing::Range(std::uint64_t{0}, isthmus::test::shards));

TEST_P(RunShards, are_not_changed_by_faults_of_share_one_late_faults_and_idle_loads) {
  const Calibration calibrated = h100();
  for_each_plan(48, [&](std::uint64_t, const Refit& refit, const Plan&, const Operations& operations) {
    for (const Calibration& constants : {wire_only(), calibrated}) {
      const Prediction healthy = Simulator(refit, operations).run(constants);
      BackgroundLoad idle;
      idle.share = 0;
      std::vector<Disturbances> harmless(3);
      harmless[0] = {{}, {nic_fault(2, 0, 1), {{5}, {FaultSubject::Kind::host, 0, 0, {}}, 1, {}}}, {}};
      harmless[1] = {{}, {nic_fault(2, 0, 0, healthy.time + Duration{1})}, {}};
      harmless[2] = {{idle}, {}, {}};
      for (const Disturbances& disturbances : harmless) {
        const Prediction again = Simulator(refit, operations, disturbances).run(constants);
        ASSERT_EQ(again.timeline.digest(), healthy.timeline.digest()) << constants.name;
        ASSERT_EQ(again.peak_staging, healthy.peak_staging);
        ASSERT_FALSE(again.outcome.stopped());
      }
    }
  });
}

TEST_P(RunShards, with_every_nic_at_half_from_the_start_are_those_of_a_machine_with_half_the_rate) {
  for_each_plan(48, [](std::uint64_t seed, const Refit& refit, const Plan&, const Operations& operations) {
    std::vector<MachineFault> faults;
    for (std::uint32_t nic = 0; nic < 32; ++nic) faults.push_back(nic_fault(nic / 8, nic % 8, 0.5));
    Refit slower = cases::fault_refit(seed);
    slower.fabric = Fabric({"dgx-h100", 4, Bandwidth{25'000'000'000}, std::nullopt});
    const Prediction found = Simulator(refit, operations, under(faults, FailedSteps::stop)).run(wire_only());
    ASSERT_EQ(found.timeline.digest(), simulate(slower, operations, wire_only()).timeline.digest());
  });
}

/// What is left undone when these operations never complete, whoever else does.
std::vector<std::uint32_t> undone_without(const Operations& operations, const std::vector<char>& failed) {
  const QueuePlan plan(operations);
  Queues queues(plan);
  std::vector<std::uint32_t> ready, next;
  std::vector<char> started(operations.list.size(), 0);
  queues.begin(ready);
  while (!ready.empty()) {
    next.clear();
    for (const std::uint32_t i : ready) {
      started[i] = 1;
      if (failed[i] == 0) queues.complete(i, next);
    }
    ready = next;
  }
  std::vector<std::uint32_t> undone;
  for (std::uint32_t i = 0; i < started.size(); ++i) {
    if (started[i] == 0) undone.push_back(i);
  }
  return undone;
}

TEST_P(RunShards, that_stop_leave_exactly_what_depends_on_failed_steps_undone) {
  const Calibration calibrated = h100();
  for_each_plan(
      96, [&](std::uint64_t seed, const Refit& refit, const Plan& plan, const Operations& operations) {
        for (const Calibration& constants : {wire_only(), calibrated}) {
          const Prediction healthy = Simulator(refit, operations).run(constants);
          const Disturbances faults = under(cases::random_faults(seed, healthy.time), FailedSteps::stop);
          const Prediction found = Simulator(refit, operations, faults).run(constants);
          std::vector<char> failed(operations.list.size(), 0);
          for (const FailedOperation& each : found.outcome.failed) {
            failed[each.operation] = 1;
            ASSERT_LE(each.moved, operations.list[each.operation].bytes);
          }
          ASSERT_EQ(found.outcome.never_started, undone_without(operations, failed));
          Bytes wanted, arrived;
          for (const RankArrival& each : arrivals(refit, plan, operations, found.outcome)) {
            ASSERT_LE(each.arrived, each.wanted);
            wanted += each.wanted;
            arrived += each.arrived;
          }
          ASSERT_EQ(arrived == wanted, !found.outcome.stopped());
          ASSERT_EQ(found.bulk + found.misc + found.other, found.time);
          for (std::size_t l = 0; l < healthy.timeline.link_bytes.size(); ++l) {
            ASSERT_LE(found.timeline.link_bytes[l], healthy.timeline.link_bytes[l]);
          }
        }
      });
}

TEST_P(RunShards, that_retry_or_reroute_bring_every_byte) {
  const Calibration calibrated = h100();
  for_each_plan(64, [&](std::uint64_t seed, const Refit& refit, const Plan& plan,
                        const Operations& operations) {
    const Prediction healthy = Simulator(refit, operations).run(calibrated);
    std::vector<MachineFault> faults = cases::random_faults(seed, healthy.time);
    for (MachineFault& fault : faults) {
      if (!fault.until) fault.until = fault.at + healthy.time;
    }
    const Duration timeout{std::max<std::int64_t>(1, healthy.time.value / 7)};
    const std::vector<Disturbances> disturbances{
        under(faults, FailedSteps::retry, timeout), under(faults, FailedSteps::reroute, timeout),
        under({nic_fault(2, 0, 0, {healthy.time.value / 3}), nic_fault(0, 0, 0, {healthy.time.value / 2})},
              FailedSteps::reroute, timeout)};
    for (const Disturbances& each : disturbances) {
      const Prediction found = Simulator(refit, operations, each).run(calibrated);
      ASSERT_FALSE(found.outcome.stopped());
      for (const RankArrival& rank : arrivals(refit, plan, operations, found.outcome)) {
        ASSERT_EQ(rank.arrived, rank.wanted);
        ASSERT_EQ(rank.serves, Serves::new_weights);
      }
      ASSERT_EQ(found.timeline.digest(),
                Simulator(refit, operations, each, Symmetry::always).run(calibrated).timeline.digest());
    }
  });
}

TEST_P(RunShards, end_each_message_when_a_naive_event_loop_does) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 480);
  std::uint64_t hit = 0;
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const Refit refit = cases::fault_refit(seed);
    const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
    const Duration healthy = simulate(refit, operations, wire_only()).time;
    const FailedSteps rule = seed % 2 == 0 ? FailedSteps::stop : FailedSteps::retry;
    const Disturbances faults =
        under(cases::random_faults(seed, healthy), rule, {std::max<std::int64_t>(1, healthy.value / 5)});
    const Prediction found = Simulator(refit, operations, faults).run(wire_only());
    if (found.outcome.failures > 0) ++hit;
    const cases::NaiveFaultRun expected = cases::naive_fault_run(refit, operations, faults);
    std::vector<char> complete(operations.list.size(), 1);
    for (const FailedOperation& each : found.outcome.failed) complete[each.operation] = 0;
    for (const std::uint32_t each : found.outcome.never_started) complete[each] = 0;
    for (std::size_t i = 0; i < operations.list.size(); ++i) {
      ASSERT_EQ(complete[i] != 0, expected.ends[i] >= 0) << "seed " << seed << ", operation " << i;
      if (complete[i] == 0) continue;
      const auto when = static_cast<long double>(found.timeline.spans[i].end.value);
      ASSERT_LE(std::abs(when - expected.ends[i]), 1e-9L * expected.ends[i] + 64)
          << "seed " << seed << ", operation " << i;
    }
  }
  if (end - begin < 20) return;  // too few to count
  EXPECT_GE(4 * hit, end - begin) << "too few faults meet a message";
}

/// A gigabyte from GPU 0 to GPU `to` on two hosts.
Refit one_message(std::uint32_t to) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{1'000'000'000}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{1'000'000'000}, Dtype::u8, contiguous_mesh({1}, Rank{to}), {{}}, ChunkRule::even};
  Refit refit = isthmus::test::make_refit({{spec}, to + 1});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  return refit;
}

Prediction one_send(const Disturbances& disturbances) {
  const Refit refit = one_message(8);
  const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
  return Simulator(refit, operations, disturbances).run(wire_only());
}

BackgroundLoad nic_load(double share, int flows = 1) {
  BackgroundLoad load;
  load.share = share;
  load.flows = flows;
  return load;
}

TEST(Background, takes_its_rate_where_that_is_below_its_fair_share) {
  EXPECT_NEAR(seconds(one_send({{nic_load(0.3)}, {}, {}}).time), 1 / 35.0, 1e-10);
  BackgroundLoad rate;
  rate.rate = Bandwidth{10'000'000'000};
  EXPECT_NEAR(seconds(one_send({{rate}, {}, {}}).time), 1 / 40.0, 1e-10);
}

TEST(Background, takes_no_more_than_its_fair_share) {
  EXPECT_NEAR(seconds(one_send({{nic_load(0.8)}, {}, {}}).time), 1 / 25.0, 1e-10);
  EXPECT_NEAR(seconds(one_send({{nic_load(1, 4)}, {}, {}}).time), 1 / 10.0, 1e-10);
}

TEST(Background, of_ports_that_the_refit_does_not_use_changes_nothing) {
  BackgroundLoad other = nic_load(0.8);
  other.gpus = {3};
  EXPECT_NEAR(seconds(one_send({{other}, {}, {}}).time), 1 / 50.0, 1e-10);
}

TEST(Background, of_kernels_leaves_the_rest_of_nvlink_and_nothing_less_of_the_network) {
  const Refit refit = one_message(1);
  const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
  BackgroundLoad kernels;
  kernels.on = BackgroundLoad::On::sm;
  kernels.share = 0.25;
  const Prediction slowed = Simulator(refit, operations, {{kernels}, {}, {}}).run(wire_only());
  EXPECT_NEAR(seconds(slowed.time), 1 / 337.5, 1e-11);
  EXPECT_NEAR(seconds(one_send({{kernels}, {}, {}}).time), 1 / 50.0, 1e-10);
}

TEST(Run, that_fails_half_way_says_what_had_moved) {
  const Prediction found = one_send(under({nic_fault(1, 0, 0, {10'000'000'000})}, FailedSteps::stop));
  ASSERT_EQ(found.outcome.failed.size(), 1U);
  EXPECT_EQ(found.outcome.failed[0].moved.value, 500'000'000);
  EXPECT_EQ(found.outcome.failed[0].when.value, 10'000'000'000);
  EXPECT_EQ(found.network_bytes.value, 500'000'000);
  EXPECT_NEAR(seconds(found.time), 0.01, 1e-12);
}

TEST(Run, that_retries_begins_a_message_again_at_the_first_timeout_after_recovery) {
  std::vector<MachineFault> faults{nic_fault(1, 0, 0, {10'000'000'000})};
  faults[0].until = Duration{35'000'000'000};
  const Prediction found = one_send(under(faults, FailedSteps::retry, {10'000'000'000}));
  EXPECT_NEAR(seconds(found.time), 0.04 + 0.02, 1e-10);
  EXPECT_EQ(found.outcome.repeated.value, 500'000'000);
  EXPECT_EQ(found.network_bytes.value, 1'500'000'000);
}

TEST(Run, that_reroutes_takes_another_nic_of_the_host) {
  const MachineFault fault = nic_fault(1, 0, 0, {10'000'000'000});
  const Prediction found = one_send(under({fault}, FailedSteps::reroute, {10'000'000'000}));
  EXPECT_NEAR(seconds(found.time), 0.02 + 0.02, 1e-10);
  EXPECT_EQ(found.outcome.detours, 1U);
  EXPECT_EQ(found.nvlink_bytes.value, 1'000'000'000);
}

TEST(Run, that_cannot_go_around_a_dead_gpu_stops) {
  MachineFault fault;
  fault.what = {FaultSubject::Kind::gpu, 1, 0, {}};
  const Prediction found = one_send(under({fault}, FailedSteps::reroute));
  EXPECT_EQ(found.outcome.failed.size(), 1U);
  EXPECT_EQ(found.outcome.failed[0].moved.value, 0);
}

}  // namespace
}  // namespace isthmus::sim
