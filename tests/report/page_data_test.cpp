#include "report/page_data.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/operations.hpp"
#include "sim/simulation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::json;

Calibration page_calibration() { return read_calibration("h100-ib400", project_folder() / "scenarios"); }

/// Its ranks on every fifth GPU of two hosts.
Refit on_two_hosts(const test::RefitCase& refit_case) {
  Refit refit = test::make_refit(refit_case);
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * 5 % 16};
  return refit;
}

Refit two_host_refit() { return on_two_hosts(*test::refit_cases()); }

struct PredictedPage {
  PredictedPage(const Refit& refit, const Policy& policy, const PageLimits& limits)
      : operations(expand(refit, std::get<Plan>(policy.make(refit)))),
        prediction(sim::simulate(refit, operations, page_calibration(), sim::Detail::terms)),
        text(page_data(refit, policy, page_calibration(), {"an assumption"}, limits)),
        document(Json::parse(text)) {}
  Operations operations;
  sim::Prediction prediction;
  std::string text;
  Json document;
};

/// The policy that serves every layout, or another one where it serves this one.
const Policy& any_policy(const Refit& refit) {
  const Policy& wanted = policies()[*rc::gen::inRange<std::size_t>(0, policies().size())];
  return std::holds_alternative<Plan>(wanted.make(refit)) ? wanted : *find_policy("p2p");
}

RC_GTEST_PROP(PageData, counts_every_operation_and_byte_within_its_limits, ()) {
  const Refit refit = two_host_refit();
  const PageLimits limits{*rc::gen::inRange<std::size_t>(1, 40), 10, 4, 3, 1024};
  const PredictedPage page(refit, any_policy(refit), limits);
  const Json& timeline = page.document["timeline"];
  RC_ASSERT(timeline["events"].size() == std::min(limits.events, page.operations.list.size()));
  RC_ASSERT(timeline["events"].size() + timeline["dropped_operations"].get<std::size_t>() ==
            page.operations.list.size());
  std::int64_t bytes = timeline["dropped_bytes"], all = 0, cells = 0;
  for (const Json& event : timeline["events"]) bytes += event[7].get<std::int64_t>();
  for (const Operation& each : page.operations.list) all += each.bytes.value;
  RC_ASSERT(bytes == all);
  for (const Json& cell : page.document["traffic"]["cells"]) cells += cell[2].get<std::int64_t>();
  RC_ASSERT(page.document["traffic"]["bytes"] == cells);
  RC_ASSERT(page.document["traffic"]["names"].size() <= std::max<std::size_t>(limits.rows, 1));
  RC_ASSERT(page.document["fabric"]["links"].size() <= limits.links);
}

RC_GTEST_PROP(PageData, has_the_times_of_the_prediction, ()) {
  const Refit refit = two_host_refit();
  const PredictedPage page(refit, any_policy(refit), PageLimits{});
  const double seconds = isthmus::seconds(page.prediction.time);
  RC_ASSERT(page.document["seconds"] == seconds);
  const std::int64_t end = page.prediction.time.value / 1000;
  for (const Json& event : page.document["timeline"]["events"]) {
    RC_ASSERT(event[1] <= event[2]);
    RC_ASSERT(event[2] <= event[3]);
    RC_ASSERT(event[3].get<std::int64_t>() <= end);
  }
  const Json& path = page.document["path"];
  RC_ASSERT(path.empty() == page.operations.list.empty());
  for (std::size_t i = 1; i < path.size(); ++i)
    RC_ASSERT(path[i]["begin_seconds"].get<double>() >= path[i - 1]["end_seconds"].get<double>() - 1e-12);
}

RC_GTEST_PROP(PageData, shows_each_link_as_busy_as_its_bytes_make_it, ()) {
  const Refit refit = two_host_refit();
  const PredictedPage page(refit, any_policy(refit), PageLimits{});
  const Calibration calibration = page_calibration();
  const double time = isthmus::seconds(page.prediction.time);
  std::map<std::string, double> use;
  double most = 0;
  for (std::size_t l = 0; l < refit.fabric.links().size(); ++l) {
    const Link& link = refit.fabric.links()[l];
    const auto bytes = static_cast<double>(page.prediction.timeline.link_bytes[l].value);
    use[link.name] = time > 0 ? bytes / static_cast<double>(calibration.achieved(link).value) / time : 0;
    most = std::max(most, use[link.name]);
  }
  const Json& links = page.document["fabric"]["links"];
  for (const Json& link : links) RC_ASSERT(std::abs(link["use"].get<double>() - use[link["link"]]) < 2e-6);
  if (!links.empty()) RC_ASSERT(std::abs(links[0]["use"].get<double>() - most) < 2e-6);
  for (const Json& domain : page.document["fabric"]["domains"]) {
    for (const Json& host : domain["hosts"]) {
      double nic = 0;
      for (const Json& gpu : host["gpus"])
        nic = std::max({nic, gpu["nic_out"].get<double>(), gpu["nic_in"].get<double>()});
      RC_ASSERT(host["nic_most"].get<double>() == nic);
    }
  }
}

TEST(PageData, says_what_it_rests_on) {
  const Refit refit = on_two_hosts(test::sample_case(3));
  const PredictedPage page(refit, *find_policy("p2p"), PageLimits{});
  EXPECT_EQ(page.document["assumed"], Json({"an assumption"}));
  const std::vector<ConstantField>& fields = calibration_fields();
  const Calibration calibration = page_calibration();
  ASSERT_EQ(page.document["constants"].size(), fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Json& shown = page.document["constants"][f];
    EXPECT_EQ(shown["constant"], std::string(fields[f].key));
    EXPECT_EQ(shown["value"], (calibration.*fields[f].member).value);
    EXPECT_EQ(shown["source"], (calibration.*fields[f].member).source);
  }
}

TEST(PageData, is_the_same_for_the_same_input) {
  const Refit refit = on_two_hosts(test::sample_case(7));
  const Policy& policy = *find_policy("p2p");
  EXPECT_EQ(PredictedPage(refit, policy, PageLimits{}).text, PredictedPage(refit, policy, PageLimits{}).text);
}

TEST(PageData, draws_hosts_where_gpus_are_too_many) {
  const Refit refit = on_two_hosts(test::sample_case(3));
  PageLimits limits;
  limits.gpus = 15;
  const PredictedPage page(refit, *find_policy("p2p"), limits);
  EXPECT_FALSE(page.document["fabric"]["gpus_drawn"].get<bool>());
  EXPECT_TRUE(page.document["fabric"]["domains"][0]["hosts"][0]["gpus"].empty());
}

}  // namespace
}  // namespace isthmus::report
