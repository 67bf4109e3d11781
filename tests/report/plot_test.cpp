#include "report/plot.hpp"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

namespace isthmus::report {
namespace {

PolicyRow predicted_row(const std::string& policy, double bulk, double misc, double other) {
  PolicyRow row;
  row.policy = policy;
  row.proven = true;
  row.seconds = bulk + misc + other;
  row.bulk_seconds = bulk;
  row.misc_seconds = misc;
  row.other_seconds = other;
  return row;
}

Comparison small_comparison() {
  Comparison comparison;
  comparison.scenario = "a<b";
  comparison.calibration = "wire-only";
  comparison.bound.time = Duration{500'000'000'000};
  comparison.published = {{"N", "golden", 2, 4, "x"}};
  comparison.policies = {predicted_row("golden", 1, 0.5, 0.25), predicted_row("p2p", 0, 3, 0), {}};
  comparison.policies.back().policy = "striped";
  comparison.policies.back().refused = "why not";
  return comparison;
}

TEST(ComparisonPlot, draws_bars_as_long_as_the_times) {
  const Comparison comparison = small_comparison();
  pugi::xml_document read;
  ASSERT_TRUE(read.load_string(plot(comparison).c_str()));
  std::vector<double> lengths;
  for (const pugi::xml_node bar : read.child("svg").children("rect")) {
    if (bar.attribute("height").as_double() == 16) lengths.push_back(bar.attribute("width").as_double());
  }
  ASSERT_EQ(lengths.size(), 6U);
  const double per_second = lengths[0];  // bulk of golden: 1 s
  const std::vector<double> times{1, 0.5, 0.25, 0, 3, 0};
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(lengths[i], times[i] * per_second, 0.05);
  // The published range ends at the right edge: it is the longest.
  EXPECT_NEAR(per_second * 4, 720 - 130 - 90, 0.1);
}

TEST(ComparisonPlot, stands_the_bound_at_its_time) {
  pugi::xml_document read;
  ASSERT_TRUE(read.load_string(plot(small_comparison()).c_str()));
  double at = 0;
  for (const pugi::xml_node line : read.child("svg").children("line")) {
    const bool upright = line.attribute("x1").as_double() == line.attribute("x2").as_double();
    if (upright && line.attribute("stroke-dasharray")) at = line.attribute("x1").as_double();
  }
  EXPECT_NEAR(at, 130 + 0.5 * (720 - 130 - 90) / 4, 0.02);
}

ScoreRow score_row(const std::string& id, double published, double seconds, bool counted) {
  ScoreRow row;
  row.published = {id, "p2p", published, published, "x"};
  row.published.counted = counted;
  row.prediction = predicted_row("p2p", seconds, 0, 0);
  return row;
}

TEST(ScoreboardPlot, puts_equal_times_on_the_diagonal_and_leaves_out_blind_rows) {
  Scoreboard board;
  board.rows = {score_row("A", 2, 2, true), score_row("B", 0.2, 0.4, false), score_row("C", 0, 1, true)};
  board.rows.front().interval = PredictedInterval{1, 3};
  pugi::xml_document read;
  ASSERT_TRUE(read.load_string(plot(board).c_str()));
  std::vector<pugi::xml_node> dots;
  for (const pugi::xml_node dot : read.child("svg").children("circle")) dots.push_back(dot);
  ASSERT_EQ(dots.size(), 2U);
  const auto x = [&](std::size_t i) { return dots[i].attribute("cx").as_double() - 64; };
  const auto y = [&](std::size_t i) { return 44 + 560 - dots[i].attribute("cy").as_double(); };
  EXPECT_NEAR(x(0), y(0), 0.02);
  EXPECT_NEAR(x(0) / 560, (std::log10(2.0) + 1) / 2, 1e-4);  // from 0.1 s to 10 s
  EXPECT_NEAR(y(1) - x(1), std::log10(2.0) / 2 * 560, 0.02);
  EXPECT_STREQ(dots[0].attribute("fill").as_string(), "#2a6fb0");
  EXPECT_STREQ(dots[1].attribute("fill").as_string(), "white");
  EXPECT_STREQ(dots[0].child_value("title"), "A, p2p: published 2 s, predicted 2.000 s");
}

TEST(ScoreboardPlot, of_no_rows_is_still_a_drawing) {
  pugi::xml_document read;
  EXPECT_TRUE(read.load_string(plot(Scoreboard{}).c_str()));
}

}  // namespace
}  // namespace isthmus::report
