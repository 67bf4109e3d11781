#include "sim/simulation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/certified_bound.hpp"
#include "planner/policy.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus::sim {
namespace {

Calibration full_calibration() { return read_calibration("h100-ib400", project_folder() / "scenarios"); }

/// A large tensor of `shape`, TP `source` to `replicas` x TP `target`, on hosts of eight GPUs.
Refit random_refit(Fabric fabric) {
  const auto power = [](int most) { return std::int64_t{1} << *rc::gen::inRange(0, most + 1); };
  const std::int64_t source = power(4), copies = power(2), target = power(4), replicas = power(3);
  TensorSpec spec;
  spec.name = "weight";
  const std::vector<std::int64_t> shape{4096, 4096};
  const int source_dimension = *rc::gen::inRange(0, 2), target_dimension = *rc::gen::inRange(0, 2);
  spec.source = {shape,
                 Dtype::bf16,
                 contiguous_mesh({copies, source}, Rank{0}),
                 {{}, {source_dimension}},
                 ChunkRule::even};
  const Rank first{static_cast<std::uint32_t>(copies * source + *rc::gen::inRange(0, 9))};
  spec.target = {shape,
                 Dtype::bf16,
                 contiguous_mesh({replicas, target}, first),
                 {{}, {target_dimension}},
                 ChunkRule::even};
  Refit refit = test::make_refit({{spec, spec}, first.value + to_size(replicas * target)});
  refit.fabric = std::move(fabric);
  return refit;
}

RC_GTEST_PROP(Simulation, never_beats_the_lower_bound, ()) {
  const Refit refit = random_refit(Fabric({"dgx-h100", 32, std::nullopt, std::nullopt}));
  const LowerBound bound = lower_bound(refit);
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    RC_ASSERT(simulate(refit, operations, wire_only()).time >= bound.any_route);
    RC_ASSERT(simulate(refit, operations, full_calibration()).time >= bound.time);
  }
}

TEST(Simulation, of_balanced_is_within_15_percent_of_the_bound_where_nics_are_lent) {
  const std::vector<std::vector<test::SparseTensor>> refits{
      {{20'000'000'000, {0}, {8, 9, 10, 11}}},
      {{20'000'000'000, {0}, {8, 16}}},
      {{10'000'000'000, {0, 1}, {8, 9}}, {10'000'000'000, {2}, {9, 10}}},
      {{30'000'000'000, {0, 1, 2, 3}, {8, 9, 10, 11, 12, 13, 14, 15}}, {5'000'000'000, {4, 5, 6, 7}, {8}}},
      {{20'000'000'000, {0, 1, 2, 3, 4, 5, 6, 7}, {8}}, {2'000'000'000, {4}, {9}}}};
  for (const std::vector<test::SparseTensor>& tensors : refits) {
    for (const Relay relay : {Relay::any, Relay::members}) {
      const Refit refit = test::sparse_refit(tensors, relay);
      const Plan plan = std::get<Plan>(plan_balanced(refit));
      const double time = seconds(simulate(refit, expand(refit, plan), wire_only()).time);
      EXPECT_LE(time, 1.15 * seconds(lower_bound(refit).time)) << tensors.size() << " tensors";
    }
  }
}

RC_GTEST_PROP(Simulation, never_beats_the_lower_bound_whatever_the_layout_and_the_port_rates, ()) {
  const auto refit_case = *test::refit_cases();
  Refit refit = test::make_refit(refit_case);
  const auto rate = *rc::gen::element<std::int64_t>(10, 50, 450);
  refit.fabric = Fabric({"dgx-h100", 8, std::nullopt, Bandwidth{rate * 1'000'000'000}});
  const LowerBound bound = lower_bound(refit);
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    RC_ASSERT(simulate(refit, operations, wire_only()).time >= bound.time);
  }
}

RC_GTEST_PROP(Simulation, never_beats_a_verified_bound_with_the_linear_program, ()) {
  const Refit refit = test::sparse_refit(test::sparse_tensors(*rc::gen::inRange<std::uint64_t>(0, 100'000)));
  const CertifiedBound certified = certified_bound(refit);
  RC_ASSERT(certified.verified() && certified.program_solved);
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    RC_ASSERT(simulate(refit, operations, wire_only()).time >= certified.bound.time);
  }
}

RC_GTEST_PROP(Simulation, gives_the_same_digest_twice_and_parts_that_sum_to_the_time, ()) {
  const Refit refit = random_refit(Fabric({"dgx-h100", 32, std::nullopt, std::nullopt}));
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    const Prediction once = simulate(refit, operations, full_calibration());
    const Prediction again = simulate(refit, operations, full_calibration());
    RC_ASSERT(once.timeline.digest() == again.timeline.digest());
    RC_ASSERT(once.bulk + once.misc + once.other == once.time);
  }
}

RC_GTEST_PROP(Simulation, starts_no_operation_before_its_cause_ended, ()) {
  const Refit refit = random_refit(Fabric({"dgx-h100", 32, std::nullopt, std::nullopt}));
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    const Timeline timeline = simulate(refit, operations, full_calibration()).timeline;
    for (const Span& span : timeline.spans) {
      RC_ASSERT(span.ready <= span.end);
      if (span.cause != Span::no_cause) RC_ASSERT(timeline.spans[span.cause].end == span.ready);
    }
    for (std::size_t i = 0; i < operations.list.size(); ++i) {
      for (const std::uint32_t before : operations.dependencies(operations.list[i])) {
        RC_ASSERT(timeline.spans[before].end <= timeline.spans[i].ready);
      }
    }
  }
}

/// One send of `bytes` from GPU 0 to GPU `to`.
Prediction one_send(std::int64_t bytes, std::uint32_t to, const Calibration& calibration) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{bytes}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{bytes}, Dtype::u8, contiguous_mesh({1}, Rank{to}), {{}}, ChunkRule::even};
  Refit refit = test::make_refit({{spec}, to + 1});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  return simulate(refit, expand(refit, std::get<Plan>(plan_p2p(refit))), calibration);
}

TEST(Simulation, of_one_message_is_bytes_over_the_slowest_port) {
  EXPECT_NEAR(seconds(one_send(1'000'000'000, 8, wire_only()).time), 1 / 50.0, 1e-11);
  EXPECT_NEAR(seconds(one_send(1'000'000'000, 1, wire_only()).time), 1 / 450.0, 1e-11);
}

TEST(Simulation, adds_latency_enqueueing_and_port_time_as_the_header_says) {
  const Calibration calibration = full_calibration();
  const double latency = calibration.network_latency.value + calibration.enqueue_time.value;
  const double wire =
      1 / (50.0 * calibration.nic_efficiency.value) + calibration.network_operation_time.value;
  EXPECT_NEAR(seconds(one_send(1'000'000'000, 8, calibration).time), latency + wire, 1e-10);
}

TEST(Simulation, adds_up_what_ranks_on_one_gpu_stage) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{1000}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{1000}, Dtype::u8, contiguous_mesh({2}, Rank{1}), {{}}, ChunkRule::even};
  Refit refit = test::make_refit({{spec}, 3});
  const Operations operations = expand(refit, std::get<Plan>(plan_gather_broadcast(refit)));
  EXPECT_EQ(simulate(refit, operations, wire_only()).peak_staging.value, 1000);
  refit.gpu_of_rank[2] = refit.gpu_of_rank[1];
  EXPECT_EQ(simulate(refit, operations, wire_only()).peak_staging.value, 2000);
}

TEST(Simulation, counts_network_and_nvlink_bytes_apart) {
  const Prediction across = one_send(1000, 8, wire_only()), inside = one_send(1000, 1, wire_only());
  EXPECT_EQ(across.network_bytes.value, 1000);
  EXPECT_EQ(across.nvlink_bytes.value, 0);
  EXPECT_EQ(inside.network_bytes.value, 0);
  EXPECT_EQ(inside.nvlink_bytes.value, 1000);
}

}  // namespace
}  // namespace isthmus::sim
