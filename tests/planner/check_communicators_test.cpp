// Communicators that are never made, and steps whose ranks have none in common: the smallest layouts of
// pitfalls E1, E2, E3 and E7, each with the layout that is sound; and random splits, which the twin enters
// rank by rank.

#include "tests/support/check_fixture.hpp"

#include <gmock/gmock.h>

#include "tests/support/mutants.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;

class CommunicatorPitfalls : public test::CheckFixture {
 protected:
  struct Call {
    std::uint32_t rank = 0, colour = Split::none;
  };

  Split& split(const std::vector<Call>& calls, std::uint32_t parent = Split::none,
               std::uint32_t slot = Split::none) {
    Split made{parent, slot, {}};
    for (const Call& call : calls) made.callers.push_back({Rank{call.rank}, call.colour});
    plan_.splits.push_back(std::move(made));
    return plan_.splits.back();
  }
};

TEST_F(CommunicatorPitfalls, E1_a_split_that_waits_for_a_rank_outside_the_new_group) {
  refit({tensor("w", {2}, {1, 0}, {1, 2})}, 3);
  send(0, 0, box({0}, {2}));
  plan_.lanes[0].split = 0;
  split({{0, 0}, {2, 0}});
  expect_fault(
      Fault::never_made,
      "split 0: creating communicator {0,2} from parent {0,1,2} - rank 1 of the parent never enters, so "
      "rank 0 waits for ever - every rank of the parent has to enter");
  plan_.splits[0].callers.push_back({Rank{1}, 1});
  expect_proven();
}

TEST_F(CommunicatorPitfalls, E2_the_second_source_replaces_the_communicator_of_the_first) {
  refit({tensor("a", {2}, {1, 0}, {1, 2}), tensor("b", {2}, {1, 1}, {1, 2})}, 3);
  send(0, 0, box({0}, {2}), 0, 0);
  send(0, 0, box({0}, {2}), 0, 1);
  plan_.instances[1].lane = {1};
  split({{0, 0}, {1, 1}, {2, 0}}, Split::none, 0);
  split({{0, 1}, {1, 0}, {2, 0}}, Split::none, 0);
  plan_.lanes[0].split = 0;
  plan_.lanes[1].split = 1;
  expect_fault(
      Fault::not_connected,
      "tensor a: rank 2 takes part in communicators {0,2} and {1,2} but has one slot, 0; step 0 on {0,2} "
      "has no peer");
  plan_.splits[1].slot = 1;
  expect_proven();
}

TEST_F(CommunicatorPitfalls, E3_a_rank_without_a_colour) {
  refit({tensor("w", {2}, {1, 0}, {1, 1})}, 6);
  send(0, 0, box({0}, {2}));
  split({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}});
  split({{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 1}, {5}}, 0);
  plan_.lanes[0].split = 1;
  expect_fault(
      Fault::never_made,
      "rank 5 has no colour in split 1 of communicator {0,1,2,3,4,5}, so it may wait for ever or join a "
      "group of others; give it a colour of its own");
  plan_.splits[1].callers[5].colour = 2;
  expect_proven();
}

TEST_F(CommunicatorPitfalls, E7_a_hop_between_rails_that_no_communicator_joins) {
  refit({tensor("w", {2}, {1, 1}, {1, 2})}, 4);
  send(0, 0, box({0}, {2}));
  plan_.lanes = {{"rails", 1, false, 0}, {"all", 1, false}};
  split({{0, 0}, {1, 1}, {2, 0}, {3, 1}});
  expect_fault(
      Fault::not_connected,
      "tensor w: step 0 (send) on lane rails joins ranks 1 and 2, which are in {1,3} and {0,2} of split "
      "0; a communicator that has both is needed");
  plan_.instances[0].lane = {1};
  expect_proven();
}

TEST_F(CommunicatorPitfalls, name_what_does_not_exist) {
  refit({tensor("w", {2}, {1, 0}, {1, 1})}, 2);
  send(0, 0, box({0}, {2}));
  split({{0, 0}, {1, 0}});
  expect_proven();
  plan_.lanes[0].split = 1;
  EXPECT_THAT(messages(proof()), ::testing::ElementsAre("lane 0 (main) - split 1 - there are 1"));
  plan_.lanes[0].split = 0;
  plan_.splits[0].parent = 0;
  EXPECT_THAT(messages(proof()), ::testing::ElementsAre("split 0 has parent 0; an earlier split is needed"));
  plan_.splits[0] = {Split::none, Split::none, {{Rank{0}, 0}, {Rank{0}, 1}}};
  EXPECT_THAT(messages(proof()), ::testing::ElementsAre("split 0 names rank 0 twice"));
  plan_.splits[0].callers = {{Rank{2}, 0}};
  EXPECT_THAT(messages(proof()), ::testing::ElementsAre("split 0 names rank 2; there are 2"));
}

TEST_F(CommunicatorPitfalls, are_found_exactly_where_the_twin_waits_for_ever) {
  int proven = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    test::Random random(seed);
    const auto ranks = static_cast<std::uint32_t>(2 + random.below(4));
    refit({tensor("a", {2}, {1, 0}, {1, 1})}, ranks);
    plan_ = {};
    plan_.lanes = {{"main", 1, false}, {"side", 1, false}};
    plan_.patterns.emplace_back();
    plan_.instances.push_back({{0}, {0}, {0}, {1}, {0}, 0});
    send(0, 0, box({0}, {1}));
    send(0, 0, box({1}, {2})).lane = 1;
    const std::size_t splits = 1 + random.below(3);
    for (std::uint32_t s = 0; s < splits; ++s) {
      std::vector<Call> calls;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (random.below(40) == 0) continue;
        const bool none = random.below(40) == 0;
        calls.push_back({rank, none ? Split::none : static_cast<std::uint32_t>(random.below(4) / 3)});
      }
      const bool child = s > 0 && random.below(2) == 0;
      split(calls, child ? static_cast<std::uint32_t>(random.below(s)) : Split::none,
            random.below(2) == 0 ? Split::none : static_cast<std::uint32_t>(random.below(2)));
    }
    for (Lane& lane : plan_.lanes) lane.split = static_cast<std::uint32_t>(random.below(splits));
    const Proof result = proof();
    (result.proven() ? proven : refused) += 1;
    EXPECT_EQ(result.proven(), test::Twin(*refit_).run(plan_).correct())
        << seed << ": " << ::testing::PrintToString(messages(result));
  }
  EXPECT_GT(proven, 60);
  EXPECT_GT(refused, 60);
}

}  // namespace
}  // namespace isthmus
