// The proof that the checker can fail. Random plans, each with one fault of one kind; checker and twin must
// agree:
//   not proven -> the twin sees wrong elements or a standstill, or the only fault is a read that is right by
//   luck proven     -> the twin's end state is right under every schedule that is tried, starving each
//   operation in turn

#include <cstdio>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "tests/support/mutants.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

using test::BuildOptions;
using test::RefitCase;
using test::Twin;
using test::TwinResult;

constexpr std::uint64_t refits = 100;

const Limits list_all{8192, 100'000};

struct Tally {
  int made = 0;
  int caught = 0;
  int equivalent = 0;   // proven, and right under all schedules tried
  int unconfirmed = 0;  // caught, but right under all schedules tried
};

bool wrong(const TwinResult& result, const Limits& limits) {
  return !result.correct() || result.largest_group > limits.operations_per_group;
}

/// True when some schedule shows the fault.
bool shows_fault(const Twin& twin, const Plan& plan, const Limits& limits) {
  return twin.under_some_schedule(plan, [&](const TwinResult& result) { return wrong(result, limits); });
}

bool only_unheld_reads(const Proof& proof) {
  for (const Violation& violation : proof.violations) {
    if (violation.fault != Fault::not_held) return false;
  }
  return true;
}

class Mutations {
 public:
  void run(std::uint64_t seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    const Plan plan = test::build_plan(refit, test::options_of(seed));
    const Twin twin(refit);
    Limits limits = list_all;
    limits.operations_per_group = twin.run(plan).largest_group;  // as tight as the plan allows
    ASSERT_TRUE(check(refit, plan, limits).proven()) << "seed " << seed;
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

 private:
  void judge(Tally& tally, const Proof& proof, const Twin& twin, const Plan& mutant, const Limits& limits) {
    const bool shown = shows_fault(twin, mutant, limits);
    ++tally.made;
    tally.caught += !proof.proven();
    tally.equivalent += proof.proven() && !shown;
    tally.unconfirmed += !proof.proven() && !shown;
    for (const Violation& violation : proof.violations) ++faults_[violation.fault];
    EXPECT_FALSE(proof.proven() && shown) << "proven, but the twin sees a fault";
    if (!proof.proven() && !shown) {
      EXPECT_TRUE(only_unheld_reads(proof))
          << "not proven, but the twin sees no fault: " << proof.violations[0].message;
    }
  }

  std::map<std::string, Tally> tallies_;
  std::map<Fault, int> faults_;
};

TEST(Mutation, every_mutant_is_caught_or_shown_to_be_harmless) {
  Mutations mutations;
  for (std::uint64_t seed = 0; seed < refits; ++seed) mutations.run(seed);
  Tally all;
  for (const auto& entry : mutations.tallies()) {
    const Tally& tally = entry.second;
    std::printf("%-20s made %4d  caught %4d  equivalent %4d  caught without a failing schedule %d\n",
                entry.first.c_str(), tally.made, tally.caught, tally.equivalent, tally.unconfirmed);
    EXPECT_GT(tally.caught, 0) << entry.first;
    all.made += tally.made;
    all.caught += tally.caught;
    all.equivalent += tally.equivalent;
    all.unconfirmed += tally.unconfirmed;
  }
  std::printf("%-20s made %4d  caught %4d  equivalent %4d  caught without a failing schedule %d\n", "all",
              all.made, all.caught, all.equivalent, all.unconfirmed);
  EXPECT_GE(mutations.tallies().size(), 25U);
  EXPECT_GE(all.made, 2000);
  EXPECT_GE(all.caught, all.made * 3 / 4);
  EXPECT_EQ(all.made, all.caught + all.equivalent);
  EXPECT_LE(all.unconfirmed, all.caught / 20);
  for (const Fault fault : {Fault::malformed, Fault::tensor_missing, Fault::tensor_repeated,
                            Fault::never_written, Fault::written_twice, Fault::outside_target,
                            Fault::not_held, Fault::wait_cycle, Fault::group_too_large}) {
    EXPECT_GT(mutations.faults().count(fault), 0U) << to_string(fault);
  }
}

/// Faults that no dependency can hide must be caught in every plan.
TEST(Mutation, faults_that_cannot_be_harmless_are_always_caught) {
  Mutations mutations;
  for (std::uint64_t seed = refits; seed < refits + 30; ++seed) mutations.run(seed);
  for (const char* name : {"drop_instance", "repeat_instance", "forward_dependency", "far_rank",
                           "wrong_tensor", "repeat_member", "stale_buffer"}) {
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
  RC_ASSERT(proof.proven() || shown || only_unheld_reads(proof));
}

}  // namespace
}  // namespace isthmus
