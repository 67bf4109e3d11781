// Quantising at the source: what policies plan, what the checker refuses, what the twin says of both.

#include "planner/quantising.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "model/precision.hpp"
#include "planner/bound.hpp"
#include "planner/certified_bound.hpp"
#include "planner/operations.hpp"
#include "planner/plan_identity.hpp"
#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/mutants.hpp"
#include "tests/support/quantised_refit.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus {
namespace {

using test::box;
using test::quantised_refit;
using test::tensor;
using ::testing::HasSubstr;

constexpr std::uint64_t quantised_seeds = 120;

Plan quantised_plan(const Refit& refit) {
  return std::get<Plan>(find_policy(balanced_quantized)->make(refit));
}

TEST(Quantising, at_the_source_ends_with_values_and_scales_on_every_target) {
  std::size_t rounded_out = 0;
  for (std::uint64_t seed = 0; seed < quantised_seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Refit refit = quantised_refit(seed);
    const Plan plan = quantised_plan(refit);
    const Proof proof = check(refit, plan);
    ASSERT_TRUE(proof.proven()) << proof.violations[0].message;
    const test::TwinResult end = test::Twin(refit).run(plan, {seed});
    EXPECT_TRUE(end.correct()) << end.impossible << end.first_fault;
    for (const Pattern& pattern : plan.patterns) {
      for (const Step& step : pattern.steps) {
        for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
          const Step& before = pattern.steps[pattern.after[a]];
          rounded_out += before.kind == StepKind::quantize && before.region != step.region;
        }
      }
    }
  }
  EXPECT_GT(rounded_out, 0U);  // targets that cut groups were among them
}

/// Bytes that leave a source's memory, by what they are.
TEST(Quantising, sends_no_byte_of_bf16_and_33_of_64_of_its_bytes) {
  for (std::uint64_t seed = 0; seed < quantised_seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Refit refit = quantised_refit(seed, {false, false});
    const test::WireBytes bytes = test::wire_bytes(refit);
    EXPECT_EQ(refit.payload().value, bytes.quantised);
    EXPECT_EQ(bytes.quantised * 64, bytes.bf16 * 33);
    for (const Pattern& pattern : quantised_plan(refit).patterns) {
      for (const Step& step : pattern.steps)
        EXPECT_EQ(step.kind == StepKind::quantize, step.from == Buffer::source);
    }
  }
}

TEST(Quantising, adds_no_group_to_any_rank_and_leaves_all_other_steps_where_they_were) {
  using Places = std::set<std::tuple<Rank, std::uint32_t, std::uint32_t>>;
  const auto places_of = [](const Operations& operations) {
    Places places;
    for (const Operation& each : operations.list) {
      places.insert({each.source, each.lane.value, each.group});
      places.insert({each.target, each.lane.value, each.group});
    }
    return places;
  };
  for (std::uint64_t seed = 0; seed < quantised_seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Refit refit = quantised_refit(seed);
    const Plan raw = std::get<Plan>(plan_balanced(refit)), plan = quantised_plan(refit);
    EXPECT_EQ(places_of(expand(refit, raw)), places_of(expand(refit, plan)));
    const auto quantises = [&](std::size_t count, const Instance& instance) {
      const std::vector<Step>& steps = plan.pattern(instance).steps;
      return count + static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const Step& step) {
               return step.kind == StepKind::quantize;
             }));
    };
    const std::size_t quantising =
        std::accumulate(plan.instances.begin(), plan.instances.end(), std::size_t{0}, quantises);
    EXPECT_EQ(plan.step_count(), raw.step_count() + quantising);
    EXPECT_GT(quantising, 0U);
  }
}

TEST(Quantising, is_refused_where_a_source_shard_cuts_a_group_and_by_all_other_policies) {
  for (std::uint64_t seed = 0; seed < quantised_seeds; ++seed) {
    SCOPED_TRACE(seed);
    const PlanResult cut = find_policy(balanced_quantized)->make(quantised_refit(seed, {true, true}));
    ASSERT_TRUE(std::holds_alternative<Refused>(cut));
    EXPECT_THAT(std::get<Refused>(cut).reason, HasSubstr("cuts a group of 32"));
  }
  for (const Policy& policy : policies()) {
    const PlanResult raw = policy.make(quantised_refit(1));
    ASSERT_TRUE(std::holds_alternative<Refused>(raw)) << policy.name;
    EXPECT_THAT(std::get<Refused>(raw).reason, HasSubstr("BF16"));
  }
  const PlanResult nothing = find_policy(balanced_quantized)->make(test::make_refit(test::sample_case(1)));
  EXPECT_THAT(std::get<Refused>(nothing).reason, HasSubstr("nothing is quantised at its source"));
}

TEST(Quantising, is_proven_of_no_plan_that_leaves_it_out) {
  for (std::uint64_t seed = 0; seed < quantised_seeds; ++seed) {
    const Refit refit = quantised_refit(seed);
    const Plan raw = std::get<Plan>(plan_balanced(refit));
    const Proof proof = check(refit, raw);
    ASSERT_FALSE(proof.proven()) << seed;
    EXPECT_EQ(proof.violations[0].fault, Fault::wrong_dtype) << seed;
    EXPECT_FALSE(test::Twin(refit).run(raw).correct()) << seed;
  }
}

TEST(Quantising, is_part_of_what_a_plan_is_for_and_of_what_a_bound_is_on) {
  const Refit refit = quantised_refit(3);
  Refit stored = quantised_refit(3);  // trained in MXFP8: the same bytes, nothing to be made of anything
  for (RefitEntry& entry : stored.tensors) entry.tensor.quantised = QuantisedPart::none;
  const Plan plan = quantised_plan(refit);
  EXPECT_TRUE(check_against(refit, plan, refit).proven());
  const Proof other = check_against(refit, plan, stored);
  ASSERT_FALSE(other.proven());
  EXPECT_EQ(other.violations[0].fault, Fault::other_refit);
  EXPECT_THAT(other.violations[0].message,
              HasSubstr("plan is for values quantised at the source; asked for none"));
  const BoundCertificate certificate = certified_bound(refit).certificate;
  EXPECT_EQ(certificate.model.quantised, Quantised::source);
  EXPECT_TRUE(verify_certificate(refit, certificate).holds());
  EXPECT_THAT(verify_certificate(stored, certificate).refusal,
              HasSubstr("where they are quantised (source; none)"));
}

/// A matrix of 2 x 64 on two ranks, by rows; ranks 2 and 3 want a row each.
class QuantisingPitfalls : public test::CheckFixture {
 protected:
  void SetUp() override {
    refit({tensor("w", {2, 64}, {2, 0, 0}, {2, 2, 0}), tensor("w_scale", {2, 2}, {2, 0, 0}, {2, 2, 0})}, 4);
    refit_->tensors[0].tensor.quantised = QuantisedPart::values;
    refit_->tensors[1].tensor.quantised = QuantisedPart::scales;
    for (std::size_t pattern = 0; pattern < 2; ++pattern) {
      const std::int64_t row = pattern == 0 ? 64 : 2;
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        quantise(r, box({rank, 0}, {rank + 1, row}), pattern);
        send_quantised(r, box({rank, 0}, {rank + 1, row}), pattern);
      }
    }
  }

  void quantise(std::size_t rank, const Region& region, std::size_t pattern) {
    Step step;
    step.kind = StepKind::quantize;
    step.to = Buffer::staging;
    step.source = step.target = LocalRank::source(rank);
    step.region = region;
    step.group = 0;
    add(step, {}, pattern);
  }
  void send_quantised(std::size_t rank, const Region& region, std::size_t pattern) {
    Step step;
    step.from = Buffer::staging;
    step.source = LocalRank::source(rank);
    step.target = LocalRank::target(rank);
    step.region = region;
    step.group = 1;
    add(step, {static_cast<std::uint32_t>(plan_.patterns[pattern].steps.size() - 1)}, pattern);
  }
};

TEST_F(QuantisingPitfalls, bf16_that_arrives_where_mxfp8_is_read) {
  expect_proven();
  plan_.patterns[0].steps[1].from = Buffer::source;
  expect_fault(
      Fault::wrong_dtype,
      "tensor w on rank 0: step 1 reads the source shard, which is bf16; it travels in bf16: quantise it "
      "first, and read staging");
}

TEST_F(QuantisingPitfalls, a_scale_of_half_its_group) {
  plan_.patterns[0].steps[0].region = box({0, 0}, {1, 48});
  plan_.patterns[0].steps[1].region = box({0, 0}, {1, 48});
  quantise(0, box({0, 48}, {1, 64}), 0);
  send_quantised(0, box({0, 48}, {1, 64}), 0);
  const Proof result = proof();
  ASSERT_EQ(messages(result).size(), 2U) << ::testing::PrintToString(messages(result));
  EXPECT_EQ(result.violations[0].fault, Fault::group_cut);
  EXPECT_EQ(
      result.violations[0].message,
      "tensor w on rank 0: step 0 quantises [0:1, 0:48]; whole groups of 32 along the last dimension are "
      "needed");
  EXPECT_FALSE(test::Twin(*refit_).run(plan_).correct());
}

TEST_F(QuantisingPitfalls, what_is_quantised_before_it_waits_for_the_kernel) {
  plan_.patterns[0].steps[1].after_end = plan_.patterns[0].steps[1].after_begin;
  plan_.patterns[0].steps[1].group = 0;
  expect_fault(
      Fault::not_held,
      "tensor w, element (0,0) on rank 0: step 1 reads it from staging without waiting for step 0, which "
      "puts it there; add the dependency");
}

TEST_F(QuantisingPitfalls, what_travels_as_it_is_and_is_quantised) {
  for (RefitEntry& entry : refit_->tensors) entry.tensor.quantised = QuantisedPart::none;
  const Proof result = proof();
  ASSERT_EQ(result.violations.size(), 4U);
  for (const Violation& violation : result.violations) EXPECT_EQ(violation.fault, Fault::wrong_dtype);
  EXPECT_THAT(result.violations[0].message, HasSubstr("step 0 quantises it; it travels in bf16"));
  EXPECT_FALSE(test::Twin(*refit_).run(plan_).correct());
}

TEST_F(QuantisingPitfalls, scales_on_a_rank_without_their_values) {
  expect_proven();
  std::swap(refit_->geometries[refit_->tensors[1].geometry].source.mesh.ranks[0],
            refit_->geometries[refit_->tensors[1].geometry].source.mesh.ranks[1]);
  const std::vector<std::string> found = messages(proof());
  EXPECT_THAT(found,
              ::testing::Contains("tensor w_scale: rank 1 has the scales [0:1, 0:2], but of the values [1:2, "
                                  "0:64]; it has to hold whole groups of 32"));
  EXPECT_FALSE(test::Twin(*refit_).run(plan_).correct());
}

TEST_F(QuantisingPitfalls, scales_of_no_tensor_or_of_another_shape) {
  refit_->tensors[0].tensor.name = "v";
  EXPECT_THAT(messages(proof()),
              ::testing::Contains("tensor w_scale: no tensor has the values that it scales"));
  refit_->tensors[0].tensor.name = "w";
  for (Layout* side : {&refit_->geometries[0].source, &refit_->geometries[0].target}) side->shape[1] = 96;
  EXPECT_THAT(messages(proof()), ::testing::Contains(HasSubstr("one scale for 32 values is needed")));
}

/// What the rules forbid although no element need be wrong: reads that are right by luck, and groups cut
/// where nobody reads.
bool may_do_no_harm(const Proof& proof) {
  return std::all_of(proof.violations.begin(), proof.violations.end(), [](const Violation& violation) {
    return violation.fault == Fault::not_held || violation.fault == Fault::group_cut ||
           violation.fault == Fault::overwritten || violation.fault == Fault::buffer_too_small ||
           violation.fault == Fault::wrong_dtype;
  });
}

TEST(QuantisingMutation, every_mutant_is_caught_or_shown_to_be_harmless) {
  std::map<std::string, std::pair<int, int>> made;  // and caught
  std::vector<test::MutationOperator> operators = test::quantising_mutations();
  for (const test::MutationOperator& other : test::mutation_operators()) operators.push_back(other);
  const Limits list_all{8192, {0xFFFFFFFF}, 100'000};
  const test::SeedRange range = test::seeds_of_shard(0, 40 * test::shards);
  for (std::uint64_t seed = range.begin; seed < range.end; ++seed) {
    const Refit refit = quantised_refit(seed);
    const Plan plan = quantised_plan(refit);
    const test::Twin twin(refit);
    for (const test::MutationOperator& mutation : operators) {
      Plan mutant = plan;
      test::Random random(seed);
      if (!mutation.apply(mutant, refit, random)) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", mutation " + std::string(mutation.name));
      const Proof proof = check(refit, mutant, list_all);
      const bool shown =
          twin.under_some_schedule(mutant, [](const test::TwinResult& r) { return !r.correct(); });
      auto& [all, caught] = made[std::string(mutation.name)];
      ++all;
      caught += proof.proven() ? 0 : 1;
      EXPECT_FALSE(proof.proven() && shown) << "proven, but the twin sees a fault";
      EXPECT_TRUE(proof.proven() || shown || may_do_no_harm(proof)) << proof.violations[0].message;
    }
  }
  for (const test::MutationOperator& mutation : test::quantising_mutations())
    EXPECT_GT(made[std::string(mutation.name)].second, 0) << mutation.name;
}

}  // namespace
}  // namespace isthmus
