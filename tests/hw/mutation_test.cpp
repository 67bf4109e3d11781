// Plans with a fault, replayed: what the checker refuses is refused by the bytes that ranks have, stopped,
// or found in the end state; or it is of a kind that moves the right bytes all the same.

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "tests/support/host_replay.hpp"
#include "tests/support/mutants.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus {
namespace {

constexpr std::uint64_t refits = 400;  // of all shards; each gives about thirty mutants
constexpr std::uint64_t orders_tried = 6;

enum class Seen { nowhere, refused, stopped, in_bytes };

Seen look(const Refit& refit, const Plan& mutant) {
  for (std::uint64_t seed = 0; seed < orders_tried; ++seed) {
    const test::Replayed replay = test::replay(refit, mutant, seed);
    if (!replay.refused.empty()) return Seen::refused;
    if (!replay.stopped.empty()) return Seen::stopped;
    if (replay.measurement.mismatch_count > 0) return Seen::in_bytes;
  }
  return Seen::nowhere;
}

bool has(const Proof& proof, const std::set<Fault>& faults) {
  for (const Violation& violation : proof.violations)
    if (faults.count(violation.fault) > 0) return true;
  return false;
}

/// Whatever the order, these leave wrong bytes or stand still.
const std::set<Fault> always_seen{Fault::tensor_missing, Fault::never_written, Fault::outside_target,
                                  Fault::wait_cycle, Fault::wrong_version};
/// Plans that name what does not exist cannot be lowered at all.
const std::set<Fault> not_lowered{Fault::malformed};

class HostMutations : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(HostMutations, that_the_checker_refuses_are_seen_by_the_replay_or_move_the_right_bytes) {
  const test::SeedRange seeds = test::seeds_of_shard(GetParam(), refits);
  std::map<Seen, int> tally;
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const bool reusing = seed % 4 == 3;
    const Refit refit = test::make_refit(reusing ? test::repeated_case(seed) : test::sample_case(seed));
    const Plan plan =
        test::build_plan(refit, reusing ? test::reusing_options_of(seed) : test::options_of(seed));
    for (const test::MutationOperator& mutation : test::mutation_operators()) {
      Plan mutant = plan;
      test::Random random(seed);
      if (!mutation.apply(mutant, refit, random)) continue;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", mutation " + std::string(mutation.name));
      const Proof proof = check(refit, mutant);
      if (has(proof, not_lowered)) continue;
      const Seen seen = look(refit, mutant);
      if (proof.proven()) {
        EXPECT_EQ(seen, Seen::nowhere) << "proven, but it went wrong";
        continue;
      }
      ++tally[seen];
      if (has(proof, always_seen)) {
        EXPECT_NE(seen, Seen::nowhere) << proof.violations.front().message;
      }
    }
  }
  const int caught = tally[Seen::refused] + tally[Seen::stopped] + tally[Seen::in_bytes];
  std::printf("refused %d, stopped %d, wrong bytes %d, right bytes all the same %d\n", tally[Seen::refused],
              tally[Seen::stopped], tally[Seen::in_bytes], tally[Seen::nowhere]);
  if (caught + tally[Seen::nowhere] < 300) return;  // too few to judge shares by, as under the sanitizers
  EXPECT_GT(tally[Seen::refused], 0);
  EXPECT_GT(tally[Seen::stopped], 0);
  EXPECT_GT(tally[Seen::in_bytes], caught / 4);
}
INSTANTIATE_TEST_SUITE_P(Mutation, HostMutations, ::testing::Range<std::uint64_t>(0, test::shards));

}  // namespace
}  // namespace isthmus
