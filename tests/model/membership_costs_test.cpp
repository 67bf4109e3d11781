#include "model/membership_costs.hpp"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(MembershipCosts, of_the_project_are_the_published_ranges) {
  const MembershipCosts costs = read_membership_costs("h100-ib400", project_folder() / "scenarios");
  EXPECT_DOUBLE_EQ(costs.communicator_shrink_time.low, 1.2);
  EXPECT_DOUBLE_EQ(costs.communicator_shrink_time.high, 3.8);
  EXPECT_DOUBLE_EQ(costs.communicator_grow_time.low, 1.7);
  EXPECT_DOUBLE_EQ(costs.communicator_grow_time.high, 4.2);
  EXPECT_NEAR(costs.first_refit_after_shrink.low, 4.16 - 2.41, 1e-9);
  EXPECT_NEAR(costs.first_refit_after_grow.high, 3.91 - 1.96, 1e-9);
  for (const MembershipField& field : membership_fields()) {
    const Constant& constant = costs.*field.member;
    EXPECT_FALSE(constant.source.empty()) << field.key;
    EXPECT_LE(constant.low, constant.value) << field.key;
    EXPECT_LE(constant.value, constant.high) << field.key;
  }
}

TEST(MembershipCosts, of_wire_only_are_nothing) {
  EXPECT_EQ(read_membership_costs("wire-only", project_folder() / "scenarios"), MembershipCosts{});
}

TEST(MembershipCosts, are_missing_or_wrong_in_one_line) {
  const TemporaryFolder folder;
  const std::string text = text_of(project_folder() / "scenarios/calibrations/h100-ib400.yaml");
  const auto refusal = [&](const std::string& changed) {
    folder.write("own.yaml", changed);
    try {
      read_membership_costs("own.yaml", folder.path());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(text), "accepted");
  EXPECT_THAT(refusal(text.substr(0, text.find("membership:"))), HasSubstr("which has no membership"));
  EXPECT_THAT(refusal(text + "  spare_time: 3 s\n"), HasSubstr("spare_time"));
  EXPECT_THAT(refusal(text.substr(0, text.find("  spare_takeover_time"))), HasSubstr("spare_takeover_time"));
}

}  // namespace
}  // namespace isthmus
