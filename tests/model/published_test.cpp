#include "model/published.hpp"

#include <gtest/gtest.h>

#include "model/scenario_reader.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::published_test {
namespace {

/// The refit of all tests with its second row, on line 14, as given.
std::string with_row(const std::string& row) {
  return whole_refit.substr(0, whole_refit.rfind("  - {")) + "  - {" + row + "}\n";
}

Published row_of(const std::string& row) { return parsed(with_row(row)).published.at(1); }

std::string fault_in(const std::string& row) { return fault_of(with_row(row)); }

TEST(Published, is_counted_and_used_for_no_fit_unless_it_says_so) {
  const Published row = row_of("id: A, policy: p2p, seconds: 2, source: x");
  EXPECT_TRUE(row.counted);
  EXPECT_FALSE(row.used_for_fit);
  EXPECT_FALSE(row.blind());
  EXPECT_TRUE(row_of("id: A, policy: p2p, seconds: 2, source: x, used_for_fit: true").used_for_fit);
}

TEST(Published, without_seconds_is_a_blind_row_that_is_not_counted) {
  const Published row = row_of("id: A, policy: p2p, source: x");
  EXPECT_TRUE(row.blind());
  EXPECT_FALSE(row.counted);
  EXPECT_EQ(
      fault_in("id: A, policy: p2p, source: x, counted: true"),
      "s.yaml:14: published.1: found counted: true without seconds; allowed: seconds, or counted: false");
  EXPECT_EQ(
      fault_in("id: A, policy: p2p, source: x, used_for_fit: true"),
      "s.yaml:14: published.1: found used_for_fit: true without seconds; allowed: seconds, or used_for_fit: "
      "false");
}

TEST(Published, that_is_not_counted_says_why) {
  EXPECT_EQ(
      fault_in("id: A, policy: p2p, seconds: 2, source: x, counted: false"),
      "s.yaml:14: published.1: found counted: false without a remark; allowed: a remark that says why the "
      "row is not counted");
  EXPECT_EQ(row_of("id: A, policy: p2p, seconds: 2, source: x, counted: false, remark: no layout").remark,
            "no layout");
}

TEST(Published, may_have_no_policy_when_it_is_not_counted) {
  EXPECT_EQ(
      fault_in("id: A, policy: none, seconds: 2, source: x"),
      "s.yaml:14: published.1.policy: found 'none'; allowed: a policy, or counted: false with policy: none");
  EXPECT_EQ(row_of("id: A, policy: none, seconds: 2, source: x, counted: false, remark: y").policy,
            no_policy);
}

TEST(Published, names_each_other_plausible_policy_once) {
  EXPECT_EQ(row_of("id: A, policy: p2p, alternatives: [golden, striped], seconds: 2, source: x").alternatives,
            (std::vector<std::string>{"golden", "striped"}));
  for (const char* bad : {"[golden, p2p]", "[golden, golden]", "[golden, none]"}) {
    const std::string fault =
        fault_in(std::string("id: A, policy: p2p, alternatives: ") + bad + ", seconds: 2, source: x");
    EXPECT_NE(fault.find("allowed: policies other than the row's own, each once"), std::string::npos)
        << fault;
  }
}

TEST(Published, unknown_keys_are_named) {
  EXPECT_NE(fault_in("id: A, policy: p2p, seconds: 2, source: x, remarks: y").find("remark"),
            std::string::npos);
}

}  // namespace
}  // namespace isthmus::published_test
