// Tensors that an engine has to load or process: pitfall C4 in its smallest layout, and what policies plan
// for such tensors.

#include "planner/installs.hpp"

#include <map>

#include <gmock/gmock.h>

#include "planner/policy.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;

class InstallPitfalls : public test::CheckFixture {
 protected:
  void SetUp() override {
    TensorSpec spec = tensor("mtp.w", {2}, {1, 0}, {1, 1});
    spec.claims.install = true;
    refit({spec}, 2);
  }

  Step load(Buffer from) const {
    Step step;
    step.kind = StepKind::load;
    step.from = from;
    step.source = step.target = LocalRank::target(0);
    step.region = box({0}, {2});
    step.group = 1;
    return step;
  }
};

TEST_F(InstallPitfalls, C4_written_but_never_finished) {
  send(0, 0, box({0}, {2}));
  expect_fault(
      Fault::not_installed,
      "tensor mtp.w, element (0) on rank 1: written by step 0, but its install step is missing; a load "
      "from staging or, after the last write, from target to target is needed");
  add(load(Buffer::target), {0});
  expect_proven();
}

TEST_F(InstallPitfalls, C4_finished_before_the_last_write) {
  send(0, 0, box({0}, {1}));
  send(0, 0, box({1}, {2}));
  add(load(Buffer::target), {0, 1});
  expect_proven();
  plan_.patterns[0].steps[2].group = 0;
  plan_.patterns[0].steps[2].after_end -= 1;
  expect_fault(Fault::not_held,
               "tensor mtp.w, element (1) on rank 1: step 2 reads it from target without waiting for step 1, "
               "which puts it there; add the dependency");
}

TEST_F(InstallPitfalls, C4_a_loader_that_takes_the_tensor_out_of_staging_finishes_it) {
  send(0, 0, box({0}, {2})).to = Buffer::staging;
  add(load(Buffer::staging), {0});
  expect_proven();
}

TEST_F(InstallPitfalls, C4_of_a_part_is_not_enough) {
  send(0, 0, box({0}, {2}));
  Step part = load(Buffer::target);
  part.region = box({0}, {1});
  add(part, {0});
  expect_fault(
      Fault::not_installed,
      "tensor mtp.w, element (1) on rank 1: written by step 0, but its install step is missing; a load "
      "from staging or, after the last write, from target to target is needed");
}

TEST(Installs, are_asked_for_in_scenarios_and_come_back_from_their_text) {
  const Scenario scenario = parsed(replaced(bare_tensor, "dtype: bf16", "dtype: bf16, install: true"));
  EXPECT_TRUE(resolve(scenario).tensors[0].tensor.install);
  EXPECT_TRUE(parsed(to_yaml(scenario)).tensors[0].claims.install);
  EXPECT_FALSE(resolve(parsed(bare_tensor)).tensors[0].tensor.install);
}

TEST(Installs, end_the_plans_of_every_policy) {
  std::map<std::string_view, int> planned;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Refit refit = test::make_refit(test::sample_case(seed));
    for (std::size_t t = 0; t < refit.tensors.size(); ++t)
      refit.tensors[t].tensor.install = (seed + t) % 3 != 0;
    const test::Twin twin(refit);
    for (const Policy& policy : policies()) {
      const PlanResult result = policy.make(refit);
      const Plan* plan = std::get_if<Plan>(&result);
      if (plan == nullptr) continue;
      ++planned[policy.name];
      const Proof proof = check(refit, *plan);
      EXPECT_TRUE(proof.proven()) << seed << " " << policy.name << ": " << proof.violations[0].message;
      const test::TwinResult end = twin.run(*plan);
      EXPECT_TRUE(end.correct()) << seed << " " << policy.name << ": " << end.impossible << end.first_fault;
    }
  }
  EXPECT_GE(planned.size(), 5U);
}

TEST(Installs, leave_plans_alone_that_need_none) {
  const Refit refit = test::make_refit(test::sample_case(1));
  const Plan plan = std::get<Plan>(plan_p2p(refit));
  EXPECT_EQ(with_installs(refit, plan).step_count(), plan.step_count());
  EXPECT_EQ(with_installs(refit, plan).lanes.size(), plan.lanes.size());
}

}  // namespace
}  // namespace isthmus
