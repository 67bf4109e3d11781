#include "planner/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;
using test::tensor;

class Form : public test::CheckFixture {};

TEST_F(Form, refuses_what_does_not_exist) {
  refit({tensor("t", {4}, {1, 0}, {1, 1})}, 2);
  const Step& step = send(0, 0, box({0}, {4}));
  const Step good = step;
  const auto expect_malformed = [this, &good](void (*spoil)(Step&, Plan&), const std::string& message) {
    const Plan before = plan_;
    plan_.patterns[0].steps[0] = good;
    spoil(plan_.patterns[0].steps[0], plan_);
    expect_fault(Fault::malformed, message);
    plan_ = before;
  };
  expect_malformed([](Step& s, Plan&) { s.region = box({0}, {5}); },
                   "tensor t: step 0 has region [0:5]; a box that has elements and lies in [0:4] is needed");
  expect_malformed([](Step& s, Plan&) { s.region = box({2}, {2}); },
                   "tensor t: step 0 has region [2:2]; a box that has elements and lies in [0:4] is needed");
  expect_malformed([](Step& s, Plan&) { s.to = Buffer::source; },
                   "tensor t: step 0 writes to the source buffer, which is read only");
  expect_malformed([](Step& s, Plan&) { s.kind = StepKind::load; },
                   "tensor t: step 0 loads from source to target; it goes from staging to target");
  expect_malformed([](Step& s, Plan&) { s.kind = StepKind::broadcast; },
                   "tensor t: step 0 has member list 0; there are 0");
  expect_malformed([](Step& s, Plan&) { s.after_end = 3; },
                   "tensor t: step 0 has dependencies 0 to 3 of a list of 0");
  expect_malformed([](Step& s, Plan& plan) { plan.patterns[0].after = {0}, s.after_end = 1; },
                   "tensor t: step 0 waits for step 0; only earlier steps are allowed");
  expect_malformed([](Step& s, Plan&) { s.target = LocalRank::target(7); },
                   "tensor t: instance 0 names rank 8; there are 2");
  expect_malformed([](Step& s, Plan&) { s.lane = 2; },
                   "tensor t: instance 0 uses lanes up to 2; there are 2");
  expect_malformed([](Step&, Plan& plan) { plan.instances[0].pattern = {4}; },
                   "tensor t: instance 0 names pattern 4; there are 1");
  expect_malformed([](Step&, Plan& plan) { plan.instances[0].schedule = 3; },
                   "tensor t: instance 0 has 1 steps from entry 3 of the schedule on; it has 0 entries");
  expect_malformed([](Step&, Plan& plan) { plan.lanes[1].window = 0; },
                   "lane 1 (side) - window 0 - at least 1 is needed");
}

TEST_F(Form, refuses_a_broadcast_whose_root_is_not_a_member) {
  refit({tensor("t", {2}, {1, 0}, {1, 1})}, 2);
  plan_.patterns[0].members = {{LocalRank::target(0)}};
  Step broadcast;
  broadcast.kind = StepKind::broadcast;
  broadcast.region = box({0}, {2});
  add(broadcast);
  expect_fault(Fault::malformed, "tensor t: step 0 has a root that is not among its members");
}

}  // namespace
}  // namespace isthmus
