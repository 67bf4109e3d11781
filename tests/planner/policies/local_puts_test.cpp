// Puts in place of messages under `balanced`: random refits, and what the constants of replays decide.

#include "planner/policies/local_puts.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "tests/support/check_fixture.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

Calibration measured() { return read_calibration("h200-nvlink", project_folder() / "scenarios"); }

std::size_t puts_in(const Plan& plan) {
  std::size_t puts = 0;
  for (const Pattern& pattern : plan.patterns)
    for (const Step& step : pattern.steps) puts += step.kind == StepKind::put ? 1 : 0;
  return puts;
}

RC_GTEST_PROP(LocalPuts, leave_every_plan_right, ()) {
  static const Calibration calibration = measured();
  const Refit refit = test::make_refit(*test::refit_cases());
  const PlanResult result = plan_under(*find_policy("balanced"), refit, calibration);
  const Plan& plan = std::get<Plan>(result);
  RC_ASSERT(check(refit, plan).proven());
  RC_ASSERT(test::Twin(refit).run(plan, {refit.ranks(), test::TwinSchedule::nobody}).correct());
  Plan messages = std::get<Plan>(plan_balanced(refit));
  RC_ASSERT(put_where_faster(refit, calibration, messages) == puts_in(plan));
}

/// Rows to columns between neighbours.
Refit rows_to_columns() { return test::make_refit({{test::tensor("t", {64, 64}, {2, 0, 0}, {2, 2, 1})}, 4}); }

TEST(LocalPuts, need_the_constants_of_replays) {
  const Refit refit = rows_to_columns();
  const Policy& balanced = *find_policy("balanced");
  EXPECT_GT(puts_in(std::get<Plan>(plan_under(balanced, refit, measured()))), 0U);
  const Calibration without = read_calibration("h100-ib400", project_folder() / "scenarios");
  EXPECT_EQ(puts_in(std::get<Plan>(plan_under(balanced, refit, without))), 0U);
  EXPECT_EQ(puts_in(std::get<Plan>(plan_under(*find_policy("p2p"), refit, measured()))), 0U);
}

TEST(LocalPuts, are_not_where_kernels_write_slower_than_messages_go) {
  Calibration slow = measured();
  slow.replay->put_bandwidth.value = 1e6;
  EXPECT_EQ(puts_in(std::get<Plan>(plan_under(*find_policy("balanced"), rows_to_columns(), slow))), 0U);
}

}  // namespace
}  // namespace isthmus
