#include "planner/plan_identity.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus::plan_identity_test {
namespace {

using test::Side;
using test::tensor;
using ::testing::ElementsAre;

std::vector<std::string> messages(const std::vector<Violation>& violations) {
  std::vector<std::string> texts;
  for (const Violation& violation : violations) {
    EXPECT_EQ(violation.fault, Fault::other_refit);
    texts.push_back(violation.message);
  }
  return texts;
}

Refit one(const TensorSpec& spec) { return test::make_refit({{spec}, 16}); }

const Side halves{2, 0, 0}, whole_copies{2, 4};

TEST(PlanIdentity, names_the_first_thing_that_a_tensor_is_not_planned_for) {
  const TensorSpec spec = tensor("w", {4, 2}, halves, whole_copies);
  const Refit made = one(spec);
  EXPECT_THAT(messages(identity_faults(made, one(spec))), ElementsAre());
  const auto asked = [&](const TensorSpec& other) { return messages(identity_faults(made, one(other))); };
  EXPECT_THAT(asked(tensor("w", {8, 2}, halves, whole_copies)),
              ElementsAre("tensor w: plan is for shape [4, 2]; asked for [8, 2]"));
  TensorSpec floats = spec;
  floats.source.dtype = floats.target.dtype = Dtype::f32;
  EXPECT_THAT(asked(floats), ElementsAre("tensor w: plan is for dtype bf16; asked for f32"));
  EXPECT_THAT(asked(tensor("w", {4, 2}, halves, {2, 4, 1})),
              ElementsAre("tensor w: plan is for target mesh [2] with replicated; asked for mesh [2] with "
                          "shard(1)"));
  EXPECT_THAT(asked(tensor("w", {4, 2}, {2, 0, 0, ChunkRule::ceil}, whole_copies)),
              ElementsAre("tensor w: plan is for source chunk rule even; asked for ceil"));
  TensorSpec turned = spec;
  std::reverse(turned.source.mesh.ranks.begin(), turned.source.mesh.ranks.end());
  EXPECT_THAT(asked(turned),
              ElementsAre("tensor w: plan is for source ranks 0-1, target ranks 4-5; asked for "
                          "1, 0 -> 4-5"));
  TensorSpec framed = spec;
  framed.target.frame = Frame{{5, 2}, {0, 0}};
  EXPECT_THAT(asked(framed), ElementsAre("tensor w: plan is for target no frame; asked for frame [5, 2] from "
                                         "[0, 0]"));
}

TEST(PlanIdentity, names_tensors_that_only_one_side_has) {
  const Refit made = one(tensor("w", {4, 2}, halves, whole_copies));
  const Refit asked = one(tensor("v", {4, 2}, halves, whole_copies));
  EXPECT_THAT(messages(identity_faults(made, asked)),
              ElementsAre("tensor v: asked for; plan is for 1 other tensors",
                          "tensor w: plan is for it; it is none of the 1 tensors asked for"));
}

TEST(PlanIdentity, counts_all_faults_and_lists_as_many_as_asked) {
  test::RefitCase made{{}, 16}, asked{{}, 16};
  for (const char* name : {"a", "b", "c"}) {
    made.tensors.push_back(tensor(name, {4}, halves, whole_copies));
    asked.tensors.push_back(tensor(name, {6}, halves, whole_copies));
  }
  const Refit refit = test::make_refit(made);
  Limits limits;
  limits.most_violations = 2;
  const Proof proof = check_against(refit, std::get<Plan>(plan_p2p(refit)), test::make_refit(asked), limits);
  EXPECT_EQ(proof.violation_count, 3U);
  EXPECT_EQ(proof.violations.size(), 2U);
  EXPECT_FALSE(proof.proven());
}

RC_GTEST_PROP(PlanIdentity, allows_another_order_of_the_tensors, ()) {
  test::RefitCase refit_case = *test::refit_cases();
  const Refit made = test::make_refit(refit_case);
  std::reverse(refit_case.tensors.begin(), refit_case.tensors.end());
  const Refit asked = test::make_refit(refit_case);
  const Plan plan = std::get<Plan>(plan_p2p(made));
  const Proof proof = check_against(made, plan, asked);
  if (!proof.proven()) RC_FAIL(proof.violations[0].message);
}

TEST(PlanIdentity, proves_a_wrong_plan_wrong_for_either_refit) {
  const Refit made = one(tensor("w", {4, 2}, halves, whole_copies));
  Plan plan = std::get<Plan>(plan_p2p(made));
  plan.patterns[0].steps.pop_back();
  EXPECT_FALSE(check_against(made, plan, made).proven());
  EXPECT_EQ(check_against(made, plan, made).violations[0].fault, Fault::never_written);
}

}  // namespace
}  // namespace isthmus::plan_identity_test
