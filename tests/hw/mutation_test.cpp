// Plans with a fault, replayed. What the checker refuses is refused by the bytes that ranks have, stopped,
// found in the end state of some order, or found to write a byte again. What nothing shows is of two kinds,
// by name: no matter of bytes, or a rule of order that is stricter than any one execution; then the twin,
// which shares nothing with the replay, sees no wrong execution either.

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "tests/support/host_replay.hpp"
#include "tests/support/late_replay.hpp"
#include "tests/support/mutants.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

constexpr std::uint64_t refits = 400;  // of all shards; each gives about thirty mutants
constexpr std::uint64_t orders_tried = 6;

enum class Seen { nowhere, refused, stopped, in_bytes, when_late, written_again };

Seen look(const Refit& refit, const Plan& mutant) {
  for (std::uint64_t seed = 0; seed < orders_tried; ++seed) {
    const test::Replayed replay = test::replay(refit, mutant, seed);
    if (!replay.refused.empty()) return Seen::refused;
    if (!replay.stopped.empty()) return Seen::stopped;
    if (replay.measurement.mismatch_count > 0) return Seen::in_bytes;
  }
  const hw::Program program(refit, mutant);
  if (test::bytes_written_again(program) > 0) return Seen::written_again;
  return test::LateReplays(program).some_wrong(test::Twin::most_starved) ? Seen::when_late : Seen::nowhere;
}

bool has(const Proof& proof, const std::set<Fault>& faults) {
  return std::any_of(proof.violations.begin(), proof.violations.end(),
                     [&](const Violation& violation) { return faults.count(violation.fault) > 0; });
}

/// Plans that name what does not exist cannot be lowered at all.
const std::set<Fault> not_lowered{Fault::malformed};
/// Nothing that bytes in host memory show: which ranks NVLink joins, whether staging begins at a whole
/// element, what NCCL cannot count or start.
const std::set<Fault> no_matter_of_bytes{Fault::out_of_reach, Fault::not_aligned, Fault::group_too_large,
                                         Fault::too_many_bytes};
/// Reads that are right because of an order that `after` does not name; reuse that only dependencies inside
/// an instance make safe; boxes of staging whose last bytes nobody uses.
const std::set<Fault> stricter_than_executions{Fault::not_held, Fault::overwritten, Fault::buffer_too_small};

class Tally {
 public:
  void add(const Refit& refit, const Plan& mutant, const Proof& proof) {
    const Seen seen = look(refit, mutant);
    if (proof.proven()) {
      EXPECT_EQ(seen, Seen::nowhere) << "proven, but it went wrong";
      return;
    }
    ++count_[seen];
    if (seen == Seen::nowhere) judge_unseen(refit, mutant, proof);
  }

  int operator[](Seen seen) const { return count_.count(seen) == 0 ? 0 : count_.at(seen); }
  int unseen_order() const { return unseen_order_; }
  int missed() const { return missed_; }
  int refused_by_checker() const {
    int sum = 0;
    for (const auto& entry : count_) sum += entry.second;
    return sum;
  }

 private:
  void judge_unseen(const Refit& refit, const Plan& mutant, const Proof& proof) {
    for (const Violation& violation : proof.violations) {
      EXPECT_TRUE(no_matter_of_bytes.count(violation.fault) > 0 ||
                  stricter_than_executions.count(violation.fault) > 0)
          << "no execution shows: " << violation.message;
    }
    if (has(proof, no_matter_of_bytes)) return;
    ++unseen_order_;
    const auto wrong = [](const test::TwinResult& result) { return !result.correct(); };
    // Late replays hold back one operation at a time, the twin several: a few wrong orders need that.
    if (test::Twin(refit).under_some_schedule(mutant, wrong)) ++missed_;
  }

  std::map<Seen, int> count_;  // of what the checker refuses
  int unseen_order_ = 0;
  int missed_ = 0;  // of these, what the twin sees
};

class HostMutations : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(HostMutations,
       that_the_checker_refuses_are_seen_by_the_replay_or_are_of_the_kinds_that_no_bytes_show) {
  // A mutant is replayed once for each of its operations, so the full scale is kept small.
  const test::SeedRange seeds =
      test::seeds_of_shard(GetParam(), test::full_scale() ? refits / 4 : std::uint64_t{refits});
  Tally tally;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const bool reusing = seed % 4 == 3;
    const Refit refit = test::make_refit(reusing ? test::repeated_case(seed) : test::sample_case(seed));
    const Plan plan =
        test::build_plan(refit, reusing ? test::reusing_options_of(seed) : test::options_of(seed));
    for (const test::MutationOperator& mutation : test::mutation_operators()) {
      Plan mutant = plan;
      test::Random random(seed);
      if (!mutation.apply(mutant, refit, random)) continue;
      if (!mutant.splits.empty()) continue;  // replays make communicators of their own
      SCOPED_TRACE("seed " + std::to_string(seed) + ", mutation " + std::string(mutation.name));
      const Proof proof = check(refit, mutant);
      if (!has(proof, not_lowered)) tally.add(refit, mutant, proof);
    }
  }
  std::printf(
      "refused %d, stopped %d, wrong bytes %d (when late %d), written again %d, unseen %d (order %d)\n",
      tally[Seen::refused], tally[Seen::stopped], tally[Seen::in_bytes], tally[Seen::when_late],
      tally[Seen::written_again], tally[Seen::nowhere], tally.unseen_order());
  const int all = tally.refused_by_checker();
  if (all < 300) return;  // too few to judge shares by, as under the sanitizers
  EXPECT_GT(tally[Seen::refused], 0);
  EXPECT_GT(tally[Seen::stopped], 0);
  EXPECT_GT(tally[Seen::written_again], 0);
  EXPECT_GT(tally[Seen::in_bytes], all / 4);
  EXPECT_LE(tally[Seen::nowhere], all / 10);
  EXPECT_LE(tally.unseen_order(), all / 20);
  EXPECT_LE(tally.missed(), all / 100);
}
INSTANTIATE_TEST_SUITE_P(Mutation, HostMutations, ::testing::Range<std::uint64_t>(0, test::shards));

}  // namespace
}  // namespace isthmus
