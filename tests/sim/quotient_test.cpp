// Parts of operations that run once for all of them, against the run of each operation by itself.

#include "sim/quotient.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::sim {
namespace {

/// Random small refits, of which two in three have replicas and shards on hosts of eight GPUs.
Refit quotient_refit(std::uint64_t seed) {
  if (seed % 3 == 0) return test::make_refit(test::sample_case(seed));
  std::mt19937_64 random(seed);
  const auto power = [&](std::uint32_t most) { return std::int64_t{1} << (random() % (most + 1)); };
  const std::int64_t copies = power(2), source = power(3), replicas = power(3), target = power(3);
  TensorSpec spec;
  spec.name = "weight";
  const std::vector<std::int64_t> shape{256 + static_cast<std::int64_t>(random() % 2), 512};
  const auto side = [&](std::int64_t many, std::int64_t shards, Rank first) {
    const int dimension = static_cast<int>(random() % 2);
    return Layout{
        shape, Dtype::bf16, contiguous_mesh({many, shards}, first), {{}, {dimension}}, ChunkRule::even};
  };
  spec.source = side(copies, source, Rank{0});
  const Rank first{static_cast<std::uint32_t>(copies * source)};
  spec.target = side(replicas, target, first);
  TensorSpec other = spec;
  other.name = "other";
  Refit refit = test::make_refit({{spec, other}, first.value + to_size(replicas * target)});
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  return refit;
}

/// Empty when both say the same; else what differs.
std::string difference(const Prediction& parts, const Prediction& full) {
  for (std::size_t i = 0; i < full.timeline.spans.size(); ++i) {
    const Span &one = parts.timeline.spans[i], &other = full.timeline.spans[i];
    if (one.ready != other.ready || one.end != other.end) return "times of operation " + std::to_string(i);
    if (parts.flow_begins[i] != full.flow_begins[i]) return "last flow of operation " + std::to_string(i);
    if (one.cause != Span::no_cause && parts.timeline.spans[one.cause].end != one.ready) {
      return "cause of operation " + std::to_string(i);
    }
  }
  if (parts.timeline.digest() != full.timeline.digest()) return "digest";
  if (parts.time != full.time || parts.peak_staging != full.peak_staging) return "totals";
  if (parts.bulk + parts.misc + parts.other != parts.time) return "attribution";
  if (parts.work.size() != full.work.size()) return "work";
  for (std::size_t w = 0; w < full.work.size(); ++w) {
    if (parts.work[w].busy != full.work[w].busy) return "busy time of " + full.work[w].resource;
  }
  return parts.binding_resource == full.binding_resource ? "" : "binding resource";
}

/// Whether all causes and what follows from them are the same too.
bool same_path(const Prediction& one, const Prediction& other) {
  for (std::size_t i = 0; i < one.timeline.spans.size(); ++i) {
    if (one.timeline.spans[i].cause != other.timeline.spans[i].cause) return false;
  }
  const auto same_term = [](const Term& a, const Term& b) {
    return a.kind == b.kind && a.bulk == b.bulk && a.misc == b.misc && a.other == b.other;
  };
  return one.bulk == other.bulk && one.misc == other.misc &&
         std::equal(one.terms.begin(), one.terms.end(), other.terms.begin(), other.terms.end(), same_term);
}

struct QuotientCount {
  std::size_t runs = 0, smaller = 0;  // smaller: with fewer parts than operations
};

void compare(const Refit& refit, std::uint64_t seed, QuotientCount& count) {
  const Calibration calibrated = read_calibration("h100-ib400", project_folder() / "scenarios");
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    const Simulator parts(refit, operations, Symmetry::always), full(refit, operations, Symmetry::never);
    const Simulator placed(refit, operations, Symmetry::by_place);
    for (const Calibration& constants : {wire_only(), calibrated}) {
      const Prediction quick = parts.run(constants, Detail::terms);
      const Prediction whole = full.run(constants, Detail::terms);
      ASSERT_EQ(difference(quick, whole), "")
          << "seed " << seed << ", " << plan.policy << ", " << constants.name;
      const Prediction by_place = placed.run(constants, Detail::terms);
      ASSERT_EQ(difference(by_place, whole), "") << "by place, seed " << seed << ", " << plan.policy;
      ASSERT_TRUE(same_path(by_place, whole)) << "by place, seed " << seed << ", " << plan.policy;
      ++count.runs;
      if (quick.parts < operations.list.size()) ++count.smaller;
    }
  }
}

class QuotientShards : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Quotient, QuotientShards, testing::Range(std::uint64_t{0}, isthmus::test::shards));

TEST_P(QuotientShards, give_each_operation_and_resource_the_times_of_the_full_run) {
  const auto [begin, end] = isthmus::test::seeds_of_shard(GetParam(), 480);
  QuotientCount count;
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    compare(quotient_refit(seed), seed, count);
    if (HasFatalFailure()) return;
  }
  if (end - begin < 20) return;  // too few to count
  EXPECT_GE(10 * count.smaller, 3 * count.runs) << "too few cases have symmetry";
}

/// Eight replicas on as many hosts, each with one message of its own from one sender.
Refit eight_receivers(std::int64_t last_rows) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t r = 0; r < 8; ++r) {
    TensorSpec spec;
    spec.name = "weight" + std::to_string(r);
    const std::vector<std::int64_t> shape{r == 7 ? last_rows : 64, 64};
    spec.source = {shape, Dtype::bf16, contiguous_mesh({1}, Rank{8 * r}), {{}}, ChunkRule::even};
    spec.target = {shape, Dtype::bf16, contiguous_mesh({1}, Rank{64 + 8 * r}), {{}}, ChunkRule::even};
    tensors.push_back(std::move(spec));
  }
  Refit refit = test::make_refit({tensors, 128});
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  return refit;
}

std::size_t parts_of(const Refit& refit) {
  const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
  EXPECT_EQ(operations.list.size(), 8U);
  return Simulator(refit, operations, Symmetry::always).run(wire_only()).parts;
}

TEST(Quotient, runs_pairs_without_anything_in_common_once) { EXPECT_EQ(parts_of(eight_receivers(64)), 1U); }

TEST(Quotient, keeps_a_pair_with_another_size_apart) { EXPECT_EQ(parts_of(eight_receivers(65)), 2U); }

/// Many tensors, so that the order of rounds jumps about in memory.
TEST(Quotient, leaves_everything_as_it_is_where_operations_are_placed_by_the_order_of_queues) {
  std::vector<TensorSpec> tensors;
  for (std::uint32_t t = 0; t < 1200; ++t) {
    TensorSpec spec;
    spec.name = "weight" + std::to_string(t);
    const std::vector<std::int64_t> shape{1024, 1024 + t % 5};
    spec.source = {shape, Dtype::bf16, contiguous_mesh({16}, Rank{0}), {{0}}, ChunkRule::ceil};
    spec.target = {shape, Dtype::bf16, contiguous_mesh({16}, Rank{16}), {{1}}, ChunkRule::ceil};
    tensors.push_back(std::move(spec));
  }
  Refit refit = test::make_refit({tensors, 32});
  refit.fabric = Fabric({"dgx-h100", 4, std::nullopt, std::nullopt});
  const Operations operations = expand(refit, std::get<Plan>(find_policy("balanced")->make(refit)));
  const Prediction whole = Simulator(refit, operations, Symmetry::never).run(wire_only(), Detail::terms);
  for (const Symmetry symmetry : {Symmetry::where_useful, Symmetry::by_place}) {
    const Prediction other = Simulator(refit, operations, symmetry).run(wire_only(), Detail::terms);
    EXPECT_EQ(difference(other, whole), "");
    EXPECT_TRUE(same_path(other, whole));
  }
}

TEST(Quotient, is_not_used_where_it_saves_little) {
  const Refit refit = test::make_refit(test::sample_case(1));
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    const Prediction prediction = simulate(refit, operations, wire_only());
    EXPECT_TRUE(prediction.parts == operations.list.size() || 4 * prediction.parts <= operations.list.size());
  }
}

}  // namespace
}  // namespace isthmus::sim
