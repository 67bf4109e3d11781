// The proof that the checker can fail. Random plans, each with one fault of one kind; checker and twin must
// agree:
//   not proven  the twin sees wrong elements or a standstill, or every fault is one that may be harmless
//   proven      the twin's end state is right under every schedule that is tried, starving each operation in
//               turn

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "tests/support/mutants.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

using test::BuildOptions;
using test::RefitCase;
using test::Twin;
using test::TwinResult;

constexpr std::uint64_t refits = 400;  // of all shards; each gives about thirty mutants

const Limits list_all{8192, {0xFFFFFFFF}, 100'000};

struct Tally {
  int made = 0;
  int caught = 0;
  int equivalent = 0;   // proven, and right under all schedules tried
  int unconfirmed = 0;  // caught, but right under all schedules tried

  void add(const Tally& other) {
    made += other.made;
    caught += other.caught;
    equivalent += other.equivalent;
    unconfirmed += other.unconfirmed;
  }
  void print(const std::string& name) const {
    std::printf("%-22s made %5d  caught %5d  equivalent %5d  caught without a failing schedule %d\n",
                name.c_str(), made, caught, equivalent, unconfirmed);
  }
};

bool wrong(const TwinResult& result, const Limits& limits) {
  return !result.correct() || result.largest_group > limits.operations_per_group ||
         result.largest_size > limits.largest_size.value;
}

/// True when some schedule shows the fault.
bool shows_fault(const Twin& twin, const Plan& plan, const Limits& limits) {
  return twin.under_some_schedule(plan, [&](const TwinResult& result) { return wrong(result, limits); });
}

/// What the rules forbid although no schedule need show it: reads that are right by luck, reuse that only the
/// dependencies inside an instance make safe, boxes of staging whose last elements nobody stages.
bool may_be_harmless(const Proof& proof) {
  for (const Violation& violation : proof.violations) {
    const bool harmless = violation.fault == Fault::not_held || violation.fault == Fault::overwritten ||
                          violation.fault == Fault::buffer_too_small;
    if (!harmless) return false;
  }
  return true;
}

class Mutations {
 public:
  void run(std::uint64_t seed) {
    const bool reusing = seed % 4 == 3;
    const Refit refit = test::make_refit(reusing ? test::repeated_case(seed) : test::sample_case(seed));
    const BuildOptions options = reusing ? test::reusing_options_of(seed) : test::options_of(seed);
    const Plan plan = test::build_plan(refit, options);
    note_reuse(plan);
    const Twin twin(refit);
    const TwinResult right = twin.run(plan);
    Limits limits = list_all;  // as tight as the plan allows
    limits.operations_per_group = right.largest_group;
    limits.largest_size = {right.largest_size};
    const Proof proof = check(refit, plan, limits);
    ASSERT_TRUE(proof.proven()) << "seed " << seed << ": " << proof.violations.front().message;
    for (const test::MutationOperator& mutation : test::mutation_operators()) {
      Plan mutant = plan;
      test::Random random(seed);
      if (!mutation.apply(mutant, refit, random)) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", mutation " + std::string(mutation.name));
      judge(tallies_[std::string(mutation.name)], check(refit, mutant, limits), twin, mutant, limits);
    }
  }

  const std::map<std::string, Tally>& tallies() const { return tallies_; }
  const std::map<Fault, int>& faults() const { return faults_; }
  int reused() const { return reused_; }
  Tally all() const {
    Tally sum;
    for (const auto& entry : tallies_) sum.add(entry.second);
    return sum;
  }

 private:
  void note_reuse(const Plan& plan) {
    std::set<std::pair<std::uint32_t, Bytes>> places;
    for (const Instance& instance : plan.instances) {
      if (instance.buffer != Instance::own_memory &&
          !places.insert({instance.buffer, instance.offset}).second) {
        ++reused_;
        return;
      }
    }
  }

  void judge(Tally& tally, const Proof& proof, const Twin& twin, const Plan& mutant, const Limits& limits) {
    const bool shown = shows_fault(twin, mutant, limits);
    ++tally.made;
    tally.caught += !proof.proven();
    tally.equivalent += proof.proven() && !shown;
    tally.unconfirmed += !proof.proven() && !shown;
    for (const Violation& violation : proof.violations) ++faults_[violation.fault];
    EXPECT_FALSE(proof.proven() && shown) << "proven, but the twin sees a fault";
    if (!proof.proven() && !shown) {
      EXPECT_TRUE(may_be_harmless(proof))
          << "not proven, but the twin sees no fault: " << proof.violations[0].message;
    }
  }

  std::map<std::string, Tally> tallies_;
  std::map<Fault, int> faults_;
  int reused_ = 0;  // plans in which instances follow each other in the same bytes
};

class MutationShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MutationShards, every_mutant_is_caught_or_shown_to_be_harmless) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), refits);
  Mutations mutations;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) mutations.run(seed);
  for (const auto& entry : mutations.tallies()) entry.second.print(entry.first);
  const Tally all = mutations.all();
  all.print("all");
  EXPECT_EQ(all.made, all.caught + all.equivalent);
  std::printf("%d of %d plans reuse staging\n", mutations.reused(),
              static_cast<int>(seeds.end - seeds.begin));
  if (all.made < 500) return;  // too few to judge shares by, as under the sanitizers
  EXPECT_GE(all.made, static_cast<int>(25 * (seeds.end - seeds.begin)));
  EXPECT_GE(all.caught, all.made * 7 / 10);
  EXPECT_LE(all.unconfirmed, all.caught / 20);
  EXPECT_GE(mutations.reused(), static_cast<int>((seeds.end - seeds.begin) / 10));
}
INSTANTIATE_TEST_SUITE_P(Mutation, MutationShards, ::testing::Range<std::uint64_t>(0, test::shards));

TEST(Mutation, every_operator_makes_wrong_plans_and_every_fault_is_found) {
  Mutations mutations;
  for (std::uint64_t seed = 1'000'000; seed < 1'000'080; ++seed) mutations.run(seed);
  EXPECT_GE(test::mutation_operators().size(), 50U);
  EXPECT_EQ(mutations.tallies().size(), test::mutation_operators().size());
  for (const auto& entry : mutations.tallies()) {
    // One plan in a hundred has steps that joined would wait for each other.
    EXPECT_GT(entry.second.caught, entry.first == "coalesce_all" ? -1 : 0) << entry.first;
  }
  for (std::size_t fault = 0; fault <= static_cast<std::size_t>(Fault::wrong_version); ++fault)
    EXPECT_GT(mutations.faults().count(static_cast<Fault>(fault)), 0U)
        << to_string(static_cast<Fault>(fault));
}

/// Faults that no dependency can hide must be caught in every plan.
TEST(Mutation, faults_that_cannot_be_harmless_are_always_caught) {
  Mutations mutations;
  for (std::uint64_t seed = 2'000'000; seed < 2'000'030; ++seed) mutations.run(seed);
  for (const char* name : {"drop_instance", "repeat_instance", "forward_dependency", "far_rank",
                           "wrong_tensor", "repeat_member", "stale_version", "stay_away_from_split"}) {
    const Tally& tally = mutations.tallies().at(name);
    EXPECT_EQ(tally.caught, tally.made) << name;
    EXPECT_GE(tally.made, 10) << name;
  }
}

RC_GTEST_PROP(Mutation, checker_and_twin_agree_on_two_faults_at_once, ()) {
  const RefitCase refit_case = *test::refit_cases();
  const Refit refit = test::make_refit(refit_case);
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
  Plan plan = test::build_plan(refit, test::options_of(seed));
  test::Random random(seed);
  const auto operators = test::mutation_operators();
  for (int i = 0; i < 2; ++i) {
    const test::MutationOperator& mutation = *rc::gen::elementOf(operators);
    Plan mutant = plan;
    // What the first fault broke, the second may not be able to walk through.
    if (i == 1 && !Twin(refit).run(plan).impossible.empty()) break;
    if (mutation.apply(mutant, refit, random)) plan = std::move(mutant);
  }
  const Limits limits = list_all;
  const Proof proof = check(refit, plan, limits);
  const bool shown = shows_fault(Twin(refit), plan, limits);
  RC_CLASSIFY(proof.proven(), "proven");
  RC_ASSERT(!(proof.proven() && shown));
  RC_ASSERT(proof.proven() || shown || may_be_harmless(proof));
}

}  // namespace
}  // namespace isthmus
