#include "report/prediction_interval.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

TEST(PredictionInterval, adds_the_effects_of_groups_as_squares_each_on_its_side) {
  const PredictedInterval interval = interval_of(10, {7, 14, 6, 13, 10, 10});
  EXPECT_DOUBLE_EQ(interval.low, 5);
  EXPECT_DOUBLE_EQ(interval.high, 15);
  const PredictedInterval opposite = interval_of(10, {11, 8});
  EXPECT_DOUBLE_EQ(opposite.low, 8);
  EXPECT_DOUBLE_EQ(opposite.high, 11);
  EXPECT_DOUBLE_EQ(interval_of(1, {-5, 1}).low, 0);
}

TEST(PredictionInterval, moves_every_constant_to_each_end_exactly_once) {
  const Calibration calibration = read_calibration("h100-ib400", project_folder() / "scenarios");
  const std::vector<Calibration> ends = interval_calibrations(calibration);
  for (const ConstantField& field : calibration_fields()) {
    const Constant& constant = calibration.*field.member;
    const bool is_time = field.unit == "s";
    int fast = 0, slow = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const double value = (ends[i].*field.member).value;
      if (value == constant.value) continue;
      EXPECT_EQ(value, (i % 2 == 0) == is_time ? constant.low : constant.high) << field.key;
      ++(i % 2 == 0 ? fast : slow);
    }
    EXPECT_EQ(fast, (is_time ? constant.low : constant.high) != constant.value) << field.key;
    EXPECT_EQ(slow, (is_time ? constant.high : constant.low) != constant.value) << field.key;
  }
}

TEST(PredictionInterval, of_wire_only_has_no_width) {
  for (const Calibration& end : interval_calibrations(wire_only())) EXPECT_EQ(end, wire_only());
}

}  // namespace
}  // namespace isthmus::report
