#include "report/shares.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

TEST(Shares, switch_constants_off_by_provenance_until_only_datasheets_are_left) {
  const Calibration calibration = read_calibration("h100-ib400", project_folder() / "scenarios");
  const std::vector<Calibration> stages = share_calibrations(calibration);
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].python_call_time.value, 0);  // fitted
  EXPECT_EQ(stages[0].network_latency, calibration.network_latency);
  EXPECT_EQ(stages[1].network_latency.value, 0);  // judgement
  EXPECT_EQ(stages[1].collective_bandwidth, calibration.collective_bandwidth);
  EXPECT_EQ(stages[2].collective_bandwidth.value, wire_only().collective_bandwidth.value);  // NCCL's source
  EXPECT_EQ(stages[2].nvlink_efficiency, calibration.nvlink_efficiency);
  EXPECT_EQ(stages[3].nvlink_efficiency.value, 1);  // metal
}

TEST(Shares, are_what_each_step_takes_off) {
  const Shares shares = shares_of(10, {7, 6, 5.5, 5});
  EXPECT_DOUBLE_EQ(shares.fitted, 0.3);
  EXPECT_DOUBLE_EQ(shares.judgement, 0.1);
  EXPECT_DOUBLE_EQ(shares.source, 0.05);
  EXPECT_DOUBLE_EQ(shares.metal, 0.05);
  EXPECT_DOUBLE_EQ(shares.datasheet, 0.5);
}

TEST(Shares, are_none_without_a_prediction) {
  EXPECT_EQ(shares_of(0, {0, 0, 0, 0}).datasheet, 0);
  EXPECT_EQ(shares_of(1, {}).datasheet, 0);
}

RC_GTEST_PROP(Shares, add_up_to_one, ()) {
  const auto times = *rc::gen::container<std::vector<double>>(
      5, rc::gen::map(rc::gen::inRange(1, 1000000), [](int t) { return t * 1e-6; }));
  const Shares shares = shares_of(times[0], {times.begin() + 1, times.end()});
  const double sum = shares.metal + shares.source + shares.datasheet + shares.fitted + shares.judgement;
  RC_ASSERT(std::abs(sum - 1) < 1e-6 / times[0]);
}

}  // namespace
}  // namespace isthmus::report
