#include "sim/terms.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::sim {
namespace {

Calibration all_terms() {
  Calibration calibration = read_calibration("h100-ib400", project_folder() / "scenarios");
  calibration.collective_bandwidth.value = 10e9;
  return calibration;
}

/// Every `stride`-th of 64 GPUs, so that transfers use NVLink, the network, and memory where ranks share one.
Refit spread_refit(const test::RefitCase& refit_case, std::uint32_t stride) {
  Refit refit = test::make_refit(refit_case);
  refit.fabric = Fabric({"dgx-h100", 8, std::nullopt, std::nullopt});
  const auto gpus = static_cast<std::uint32_t>(refit.fabric.gpu_count());
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * stride % gpus};
  return refit;
}

Refit some_refit() {
  const auto stride = *rc::gen::inRange<std::uint32_t>(1, 12);
  return spread_refit(*test::refit_cases(), stride);
}

/// Calls back with the operations of each policy that serves the refit.
template <class Visit>
void for_each_plan(const Refit& refit, Visit&& visit) {
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    if (const Plan* plan = std::get_if<Plan>(&result)) visit(expand(refit, *plan));
  }
}

std::map<TermKind, Duration> by_kind(const Prediction& prediction) {
  std::map<TermKind, Duration> terms;
  for (const Term& term : prediction.terms) terms[term.kind] += term.total();
  return terms;
}

RC_GTEST_PROP(Terms, add_up_to_the_time_and_to_each_of_its_parts_in_picoseconds, ()) {
  const Refit refit = some_refit();
  for_each_plan(refit, [&](const Operations& operations) {
    for (const Calibration& calibration : {all_terms(), wire_only()}) {
      const Prediction prediction = simulate(refit, operations, calibration, Detail::terms);
      Term sum;
      for (const Term& term : prediction.terms) {
        RC_ASSERT(term.bulk >= Duration{} && term.misc >= Duration{} && term.other >= Duration{});
        sum.bulk += term.bulk;
        sum.misc += term.misc;
        sum.other += term.other;
      }
      RC_ASSERT(sum.bulk == prediction.bulk && sum.misc == prediction.misc);
      RC_ASSERT(sum.other == prediction.other && sum.total() == prediction.time);
    }
  });
}

RC_GTEST_PROP(Terms, stand_in_the_order_of_kinds_each_once, ()) {
  const Refit refit = some_refit();
  for_each_plan(refit, [&](const Operations& operations) {
    const std::vector<Term> terms = simulate(refit, operations, all_terms(), Detail::terms).terms;
    for (std::size_t i = 0; i + 1 < terms.size(); ++i) RC_ASSERT(terms[i].kind < terms[i + 1].kind);
    for (const Term& term : terms) RC_ASSERT(term.total() > Duration{});
  });
}

RC_GTEST_PROP(Terms, of_wires_alone_are_wires_and_lanes, ()) {
  const Refit refit = some_refit();
  for_each_plan(refit, [&](const Operations& operations) {
    for (const auto& [kind, unused] : by_kind(simulate(refit, operations, wire_only(), Detail::terms))) {
      RC_ASSERT(kind == TermKind::network_wire || kind == TermKind::nvlink_wire ||
                kind == TermKind::lane_window);
    }
  });
}

TEST(Terms, of_random_refits_are_of_every_kind_that_there_is) {
  std::map<TermKind, Duration> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Refit refit = spread_refit(test::sample_case(seed), static_cast<std::uint32_t>(1 + seed % 11));
    for_each_plan(refit, [&](const Operations& operations) {
      seen.merge(by_kind(simulate(refit, operations, all_terms(), Detail::terms)));
    });
  }
  seen.erase(TermKind::host_call);  // no constant gives it yet
  EXPECT_EQ(seen.size(), term_kinds - 1);
}

struct Switch {  // constants that, neutral, take these terms away
  std::vector<Constant Calibration::*> constants;
  std::vector<TermKind> terms;
};

std::vector<Switch> switches() {
  using C = Calibration;
  return {
      {{&C::nvlink_efficiency, &C::nic_efficiency, &C::pcie_efficiency, &C::uplink_efficiency},
       {TermKind::link_efficiency}},
      {{&C::collective_bandwidth}, {TermKind::collective_cap}},
      {{&C::network_operation_time}, {TermKind::network_operation}},
      {{&C::nvlink_operation_time}, {TermKind::nvlink_operation}},
      {{&C::network_latency}, {TermKind::network_latency}},
      {{&C::nvlink_latency}, {TermKind::nvlink_latency}},
      {{&C::enqueue_time}, {TermKind::enqueue}},
      {{&C::export_time_per_tensor}, {TermKind::export_host}},
      {{&C::load_time_per_tensor}, {TermKind::load_host}},
      {{&C::memory_bandwidth}, {TermKind::memory}},
  };
}

Calibration without(Calibration calibration, const Switch& one) {
  const Calibration neutral = wire_only();
  for (Constant Calibration::*constant : one.constants) calibration.*constant = neutral.*constant;
  return calibration;
}

RC_GTEST_PROP(Terms, are_gone_where_their_constant_is_switched_off, ()) {
  const Refit refit = some_refit();
  const Switch one = *rc::gen::elementOf(switches());
  for_each_plan(refit, [&](const Operations& operations) {
    const auto terms = by_kind(simulate(refit, operations, without(all_terms(), one), Detail::terms));
    for (const TermKind kind : one.terms) RC_ASSERT(terms.count(kind) == 0U);
  });
}

/// Ranks on GPUs of the same number, two hosts of eight.
Refit two_hosts() {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = spec.source;
  Refit refit = test::make_refit({{spec}, 16});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  return refit;
}

Operation one_operation(StepKind kind, std::uint32_t source, std::uint32_t target, std::int64_t bytes,
                        std::uint32_t group = 0) {
  Operation operation;
  operation.kind = kind;
  operation.source = Rank{source};
  operation.target = Rank{target};
  operation.bytes = operation.bulk_bytes = {bytes};
  operation.group = group;
  operation.parts = 1;
  return operation;
}

RC_GTEST_PROP(Terms, of_one_send_are_the_formulas_and_leave_the_others_alone, ()) {
  const Refit refit = two_hosts();
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  const auto target = *rc::gen::element<std::uint32_t>(1, 8);
  operations.list = {one_operation(StepKind::send, 0, target, *rc::gen::inRange(1, 1 << 30))};
  const auto all = by_kind(simulate(refit, operations, all_terms(), Detail::terms));
  const bool network = target == 8;
  RC_ASSERT(all.at(network ? TermKind::network_latency : TermKind::nvlink_latency) ==
            Duration{network ? 40'000'000 : 15'000'000});
  RC_ASSERT(all.at(TermKind::enqueue) == Duration{1'000'000});
  const Duration wire = operations.list[0].bytes / Bandwidth{(network ? 50 : 450) * 1'000'000'000LL};
  const auto near = [](Duration a, Duration b) {  // rates are whole numbers, ends whole picoseconds
    return std::abs((a - b).value) <= 5 + std::max(a, b).value / 1'000'000;
  };
  RC_ASSERT(near(all.at(network ? TermKind::network_wire : TermKind::nvlink_wire), wire));
  for (const Switch& one : switches()) {
    const auto fewer = by_kind(simulate(refit, operations, without(all_terms(), one), Detail::terms));
    for (const auto& [kind, time] : all) {
      if (std::count(one.terms.begin(), one.terms.end(), kind) > 0) continue;
      // operation time is port time: its bytes travel at what the port achieves
      RC_ASSERT(near(fewer.at(kind), time));
    }
  }
}

/// A send over the network, then one of rank 0 on the same lane.
std::map<TermKind, Duration> two_sends(std::uint32_t second_target, std::uint32_t window, bool depends) {
  const Refit refit = two_hosts();
  Operations operations;
  operations.lanes = {{"lane", window, false}};
  operations.list = {one_operation(StepKind::send, 0, 8, 1'000'000'000),
                     one_operation(StepKind::send, 0, second_target, 9'000'000'000, 1)};
  if (depends) {
    operations.after = {0};
    operations.list[1].after_end = 1;
  }
  return by_kind(simulate(refit, operations, wire_only(), Detail::terms));
}

using TermMap = std::map<TermKind, Duration>;
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000'000}; }

TEST(Terms, say_that_a_lane_holds_back_what_has_a_free_way) {
  EXPECT_EQ(two_sends(1, 1, false),
            (TermMap{{TermKind::lane_window, milliseconds(20)}, {TermKind::nvlink_wire, milliseconds(20)}}));
}

TEST(Terms, do_not_blame_a_lane_for_a_full_link_a_wide_window_or_a_dependency) {
  EXPECT_EQ(two_sends(9, 1, false), (TermMap{{TermKind::network_wire, milliseconds(200)}}));
  EXPECT_EQ(two_sends(1, 2, false), (TermMap{{TermKind::network_wire, milliseconds(20)}}));
  EXPECT_EQ(two_sends(1, 1, true),
            (TermMap{{TermKind::network_wire, milliseconds(20)}, {TermKind::nvlink_wire, milliseconds(20)}}));
}

TEST(Terms, blame_a_lane_for_all_the_turns_of_others_before_a_rank_has_its_own) {
  const Refit refit = two_hosts();
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.list = {one_operation(StepKind::send, 0, 8, 1'000'000'000),
                     one_operation(StepKind::send, 0, 9, 1'000'000'000, 1),
                     one_operation(StepKind::send, 1, 0, 9'000'000'000, 2)};
  EXPECT_EQ(by_kind(simulate(refit, operations, wire_only(), Detail::terms)),
            (TermMap{{TermKind::lane_window, milliseconds(40)}, {TermKind::nvlink_wire, milliseconds(20)}}));
}

TEST(Terms, give_a_lane_what_others_leave_of_the_way) {
  const Refit refit = two_hosts();
  Operations operations;  // while rank 0 sends for 20 ms, rank 2 loads rank 1's NVLink for half of that
  operations.lanes = {{"lane", 1, false}, {"other", 1, false}};
  operations.list = {one_operation(StepKind::send, 0, 8, 1'000'000'000),
                     one_operation(StepKind::send, 0, 1, 9'000'000'000, 1),
                     one_operation(StepKind::send, 2, 1, 4'500'000'000)};
  operations.list[2].lane = LaneId{1};
  const auto terms = by_kind(simulate(refit, operations, wire_only(), Detail::terms));
  EXPECT_EQ(terms, (TermMap{{TermKind::lane_window, milliseconds(10)},
                            {TermKind::network_wire, milliseconds(10)},
                            {TermKind::nvlink_wire, milliseconds(20)}}));
}

TEST(Terms, of_a_capped_broadcast_are_the_wire_and_the_cap) {
  const Refit refit = two_hosts();
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.members = {{Rank{0}, Rank{8}}};
  operations.list = {one_operation(StepKind::broadcast, 0, 0, 1'000'000'000)};
  Calibration calibration = wire_only();
  calibration.collective_bandwidth.value = 10e9;
  const TermMap terms = by_kind(simulate(refit, operations, calibration, Detail::terms));
  EXPECT_EQ(terms.size(), 2U);
  EXPECT_NEAR(seconds(terms.at(TermKind::network_wire)), 0.020, 1e-9);  // shares are multiples of 2^-30
  EXPECT_NEAR(seconds(terms.at(TermKind::collective_cap)), 0.080, 1e-9);
}

TEST(Terms, of_an_export_and_a_load_are_host_time) {
  const Refit refit = two_hosts();
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.members = {{Rank{0}, Rank{8}}};
  operations.list = {one_operation(StepKind::broadcast, 0, 0, 1'000'000'000),
                     one_operation(StepKind::load, 8, 8, 1'000'000'000, 1)};
  operations.after = {0};
  operations.list[1].after_end = 1;
  operations.list[0].parts = operations.list[1].parts = 4;
  Calibration calibration = wire_only();
  calibration.export_time_per_tensor.value = 1e-3;
  calibration.load_time_per_tensor.value = 2e-3;
  calibration.memory_bandwidth.value = 2e12;
  EXPECT_EQ(by_kind(simulate(refit, operations, calibration, Detail::terms)),
            (TermMap{{TermKind::network_wire, milliseconds(20)},
                     {TermKind::export_host, milliseconds(4)},
                     {TermKind::load_host, milliseconds(8)},
                     {TermKind::memory, milliseconds(1)}}));
}

TEST(Terms, cost_no_prediction_anything) {
  const Refit refit = two_hosts();
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.list = {one_operation(StepKind::send, 0, 8, 1000)};
  const Prediction with = simulate(refit, operations, all_terms(), Detail::terms);
  const Prediction bare = simulate(refit, operations, all_terms());
  EXPECT_EQ(with.timeline.digest(), bare.timeline.digest());
  EXPECT_TRUE(bare.terms.empty() && bare.flow_begins.empty());
}

}  // namespace
}  // namespace isthmus::sim
