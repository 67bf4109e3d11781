// Plans on emulated hosts: every policy's plan of the scenarios in scenarios/emulated, run by MPI jobs over
// four network namespaces with rate-limited links, byte-exact and beside its prediction.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/emulated_hosts/command.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

using Json = nlohmann::json;

struct MeasuredPlan {
  std::string scenario, policy;
  bool byte_exact = false;
  double measured = 0, predicted = 0;  // median; seconds

  double error() const { return measured / predicted - 1; }
};

class EmulatedHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
  }

  /// Runs plans.sh with so many ranks on each host; false where it was skipped.
  bool run(int slots, const std::string& names) {
    const std::filesystem::path here = project_folder() / "tests/emulated_hosts";
    const std::string command =
        fmt::format("EMULATED_SLOTS={} EMULATED_SECONDS=120 '{}' 4 200mbit '{}' '{}' '{}' '{}' {}", slots,
                    (here / "hosts.sh").string(), (here / "plans.sh").string(), program_path(),
                    (project_folder() / "scenarios/emulated").string(), folder_.path().string(), names);
    const test::CommandResult result = test::run_command(command);
    log_ += result.output;
    reason_ = result.output.substr(0, result.output.find('\n'));
    if (result.status == 77) return false;
    EXPECT_EQ(result.status, 0) << result.output;
    return true;
  }

  std::vector<MeasuredPlan> plans() const {
    std::vector<MeasuredPlan> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().extension() != ".json") continue;
      std::ifstream stream(entry.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      const Json document = Json::parse(text, nullptr, false);
      if (document.is_discarded()) {
        ADD_FAILURE() << entry.path() << " has no result\n" << log_;
        continue;
      }
      for (const Json& row : document["policies"]) {
        if (row.contains("refused")) continue;
        found.push_back({entry.path().stem().string(), row["policy"], row["byte_exact"],
                         row["median_seconds"], row["predicted_seconds"]});
      }
    }
    return found;
  }

  TemporaryFolder folder_;
  std::string log_, reason_;
};

TEST_F(EmulatedHosts, run_plans_byte_exactly_in_about_the_time_that_is_predicted) {
  if (!run(1, "pair fan-in fan-out replicas rows-to-columns in-place straggler")) GTEST_SKIP() << reason_;
  ASSERT_TRUE(run(2, "shared-links shared-replicas"));
  std::vector<double> errors;
  std::vector<MeasuredPlan> all = plans();
  std::sort(all.begin(), all.end(), [](const MeasuredPlan& a, const MeasuredPlan& b) {
    return std::tie(a.scenario, a.policy) < std::tie(b.scenario, b.policy);
  });
  fmt::print("{:<18} {:<18} {:>10} {:>10} {:>8}\n", "scenario", "policy", "measured", "predicted", "error");
  for (const MeasuredPlan& plan : all) {
    EXPECT_TRUE(plan.byte_exact) << plan.scenario << ", " << plan.policy;
    fmt::print("{:<18} {:<18} {:>8.4f} s {:>8.4f} s {:>+6.1f} %\n", plan.scenario, plan.policy, plan.measured,
               plan.predicted, 100 * plan.error());
    errors.push_back(std::abs(plan.error()));
  }
  ASSERT_GE(all.size(), 20U) << log_;
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  fmt::print("{} plans, median error {:.1f} %, largest {:.1f} %\n", all.size(), 100 * median,
             100 * errors.back());
  EXPECT_LE(median, 0.10);
}

}  // namespace
}  // namespace isthmus
