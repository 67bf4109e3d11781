// The ways of a change of membership add up from simulations and constants.

#include "report/membership.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/membership_case.hpp"

namespace isthmus::report {
namespace {

using test::MembershipCase;
using ::testing::HasSubstr;

MembershipReport judge(const MembershipCase& made, const std::string& calibration = "h100-ib400",
                       double next_refit = 0) {
  const Scenario scenario = made.scenario();
  const std::filesystem::path folder = project_folder() / "scenarios";
  return judge_membership(scenario, resolve(scenario), read_calibration(calibration, folder),
                          read_membership_costs(calibration, folder),
                          {made.change, {"balanced", "p2p"}, next_refit});
}

const WayRow& row_of(const MembershipReport& report, Way way, const std::string& policy) {
  const auto found = std::find_if(report.ways.begin(), report.ways.end(),
                                  [&](const WayRow& row) { return row.way == way && row.policy == policy; });
  EXPECT_NE(found, report.ways.end());
  return *found;
}

double simulated(const Refit& refit, const std::string& policy, const std::string& calibration) {
  const Plan plan = std::get<Plan>(find_policy(policy)->make(refit));
  return seconds(
      sim::simulate(refit, expand(refit, plan), read_calibration(calibration, project_folder() / "scenarios"))
          .time);
}

MembershipCase with(MembershipChange change) {
  MembershipCase made;
  made.change = std::move(change);
  return made;
}

TEST(MembershipWays, take_a_refit_and_no_more_where_nothing_changes) {
  const MembershipReport report = judge(with({}));
  ASSERT_EQ(report.ways.size(), 2U) << "one way, two policies";
  EXPECT_DOUBLE_EQ(report.ways[0].seconds,
                   simulated(resolve(MembershipCase{}.scenario()), "balanced", "h100-ib400"));
  EXPECT_EQ(report.catch_ups.front().moved.value, 0);
}

TEST(MembershipWays, cost_what_moves_and_nothing_else_without_software) {
  const MembershipCase made = with({{2}, {}, {4}});
  const MembershipReport report = judge(made, "wire-only");
  const Scenario scenario = made.scenario();
  const Membership after = change_membership(scenario, resolve(scenario), made.change);
  const double refit = simulated(after.refit, "balanced", "wire-only");
  ASSERT_NE(report.chosen(), nullptr);
  const double moving = report.chosen()->fastest()->seconds;
  for (const Way way : {Way::recreate, Way::shrink_grow}) {
    const WayRow& row = row_of(report, way, "balanced");
    EXPECT_DOUBLE_EQ(row.seconds, moving + refit);
    EXPECT_DOUBLE_EQ(row.low, row.high);
  }
}

TEST(MembershipWays, add_up_from_their_phases) {
  const MembershipReport report = judge(with({{2}, {}, {4}}));
  for (const WayRow& row : report.ways) {
    ASSERT_EQ(row.refused, "");
    double at = 0;
    for (const MembershipPhase& phase : row.phases) {
      EXPECT_DOUBLE_EQ(phase.begin, at) << phase.what;
      at = phase.end;
    }
    EXPECT_NEAR(at, row.seconds, 1e-9);
    EXPECT_LE(row.low, row.seconds);
    EXPECT_LE(row.seconds, row.high);
  }
  const double moving = report.chosen()->fastest()->seconds;
  const WayRow& shrink = row_of(report, Way::shrink_grow, "p2p");
  EXPECT_NEAR(shrink.seconds, 2.5 + 2.95 + moving + shrink.refit_seconds + 2.19, 1e-9);
  const WayRow& recreate = row_of(report, Way::recreate, "p2p");
  EXPECT_NEAR(recreate.seconds, 0.5 + 4 + moving + shrink.refit_seconds + 2.19, 1e-9);
}

TEST(MembershipWays, count_lost_capacity_up_to_the_end_of_the_slowest) {
  const MembershipReport report = judge(with({{2}, {}, {}}));  // 16 GPUs generate, 8 afterwards
  double end = 0;
  for (const WayRow& row : report.ways) end = std::max(end, row.seconds);
  const WayRow& shrink = row_of(report, Way::shrink_grow, "balanced");
  EXPECT_NEAR(shrink.lost_gpu_seconds, 16 * shrink.seconds + 8 * (end - shrink.seconds), 1e-9);
  const WayRow& spares = row_of(report, Way::spares, "balanced");
  EXPECT_NEAR(spares.lost_gpu_seconds, 16 * spares.seconds, 1e-9) << "afterwards the spare serves";
  EXPECT_THAT(report.spares, ::testing::ElementsAre(3));
}

TEST(MembershipWays, let_the_rest_serve_until_the_next_weights_are_there) {
  const MembershipReport report = judge(with({{}, {}, {4}}), "h100-ib400", 60);
  const WayRow& row = row_of(report, Way::shrink_grow, "balanced");
  EXPECT_NEAR(row.seconds, 60 + row.refit_seconds + 1.405, 1e-9);
  const auto wait = std::find_if(row.phases.begin(), row.phases.end(), [](const MembershipPhase& phase) {
    return phase.what == "wait for the refit";
  });
  ASSERT_NE(wait, row.phases.end());
  EXPECT_EQ(wait->serving, 24);
  EXPECT_EQ(row_of(report, Way::spares, "").refused, "no generation replica is lost");
}

TEST(MembershipWays, take_spares_beyond_the_fabric_where_no_host_is_free) {
  MembershipCase made = with({{2}, {}, {}});
  made.hosts = 3;
  EXPECT_THAT(judge(made).spares, ::testing::ElementsAre(3));
}

TEST(MembershipWays, are_refused_where_weights_are_lost) {
  const MembershipReport report = judge(with({{0, 1, 2}, {0}, {1, 2}}));
  EXPECT_EQ(row_of(report, Way::recreate, "p2p").refused.substr(0, 12), "no catch-up:");
  EXPECT_EQ(report.fastest(), nullptr);
  EXPECT_THAT(to_text(report), HasSubstr("no way can be done"));
}

TEST(MembershipDocuments, say_the_same_in_text_and_json) {
  const MembershipReport report = judge(with({{2}, {}, {4}}));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["ways"].size(), report.ways.size());
  EXPECT_EQ(json["fastest"]["way"], to_string(report.fastest()->way));
  EXPECT_EQ(json["catch_ups"].size(), 2U);
  EXPECT_EQ(json["catch_ups"][0]["moved_bytes"], report.catch_ups[0].moved.value);
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("hosts 2 leave, hosts 4 join generation"));
  EXPECT_THAT(text, HasSubstr("shrink communicators 2.500 s, grow communicators 2.950 s, catch up"));
}

}  // namespace
}  // namespace isthmus::report
