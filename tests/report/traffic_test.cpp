#include "report/traffic.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

using testing::HasSubstr;

const std::filesystem::path folder = project_folder() / "scenarios/incidents";
const std::string refused = "15-oversized-chunk";

std::set<std::string> incidents() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().stem().string());
  return names;
}

Scenario incident(const std::string& name) { return read_scenario(folder / (name + ".yaml")); }

std::string what_if_page() {
  std::ifstream stream(project_folder() / "docs/what-if.md");
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The columns of the page's table that the program can fill in.
std::string table_row(const std::string& name) {
  const Scenario scenario = incident(name);
  const PublishedRatio& row = scenario.traffic->published.at(0);
  std::string predicted = "refused", within = "-";
  if (name != refused) {
    const double ratio = compare_traffic(scenario).ratio().value();
    predicted = fmt::format("{:.3f}", ratio);
    if (row.low) within = std::abs(*deviation(ratio, row)) <= published_tolerance ? "yes" : "no";
  }
  return fmt::format("| {} | [{}](../scenarios/incidents/{}.yaml) | {} | {} | {} |", row.id, name, name,
                     row.low ? fmt::format("{:g}", *row.low) : "-", predicted, within);
}

TEST(Incidents, have_the_ratio_that_their_files_derive) {
  for (const std::string& name : incidents()) {
    if (name == refused) continue;
    const TrafficComparison comparison = compare_traffic(incident(name));
    ASSERT_TRUE(comparison.expected) << name;
    EXPECT_NEAR(comparison.ratio().value() / *comparison.expected, 1, 0.005) << name;
  }
}

TEST(Incidents, with_a_pair_of_numbers_and_a_known_cause_are_within_15_percent) {
  for (const char* name :
       {"01-gpudirect-off", "02-flat-vm", "08-three-servers", "09-sick-host", "10-gpu-without-nvlink",
        "13-channels-per-peer", "13-channels-per-peer-cured", "24-missing-uplinks"}) {
    const TrafficComparison comparison = compare_traffic(incident(name));
    EXPECT_LE(std::abs(deviation(*comparison.ratio(), comparison.published.at(0)).value()),
              published_tolerance)
        << name;
  }
}

TEST(Incidents, with_wrong_data_are_refused) {
  try {
    compare_traffic(incident(refused));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("15-oversized-chunk.yaml:10: traffic.nccl.NCCL_CHUNK_SIZE: found 1048576"));
  }
}

TEST(Incidents, stand_in_the_table_as_they_are_predicted) {
  const std::string page = what_if_page();
  for (const std::string& name : incidents()) EXPECT_THAT(page, HasSubstr(table_row(name)));
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = page.find("](../scenarios/incidents/", at)) != std::string::npos; ++at)
    ++rows;
  EXPECT_EQ(rows, incidents().size());
}

TEST(TrafficReport, measures_from_the_nearer_end_of_the_published_range) {
  const PublishedRatio row{"1", 0.4, 0.5, "", "", "", ""};
  EXPECT_DOUBLE_EQ(*deviation(0.45, row), 0);
  EXPECT_NEAR(*deviation(0.36, row), -0.1, 1e-12);
  EXPECT_NEAR(*deviation(0.6, row), 0.2, 1e-12);
  EXPECT_FALSE(deviation(0.6, PublishedRatio{}));
}

TEST(TrafficReport, text_has_both_rates_the_ratio_and_what_was_published) {
  const std::string text = to_text(compare_traffic(incident("09-sick-host")));
  EXPECT_THAT(text,
              HasSubstr("healthy      4.688 ms     6400.000 GB/s      400.000 GB/s  ring 0 at 50.000 GB/s"));
  EXPECT_THAT(text, HasSubstr("edited / healthy: 0.500\n"));
  EXPECT_THAT(text, HasSubstr("held by NIC into GPU 0 on host 1 (100 % busy)"));
  EXPECT_THAT(text, HasSubstr("  9  0.56, predicted 0.500: within 15 % (-11 %)\n      every pair"));
}

TEST(TrafficReport, json_carries_every_number_of_the_text) {
  const auto document = nlohmann::json::parse(to_json(compare_traffic(incident("13-channels-per-peer"))));
  EXPECT_EQ(document["scenario"], "13-channels-per-peer");
  EXPECT_EQ(document["healthy"]["channels_per_peer"], 2);
  EXPECT_EQ(document["edited"]["channels_per_peer"], 1);
  EXPECT_EQ(document["edited"]["bus_bytes_per_second"], 20'000'000'000);
  EXPECT_NEAR(document["ratio"].get<double>(), 20.0 / 24, 1e-9);
  EXPECT_EQ(document["published"][0]["within"], true);
  EXPECT_EQ(document["edited"]["streams"], 32);
}

TEST(TrafficReport, without_edits_has_one_prediction_and_no_ratio) {
  const Scenario scenario = parse_scenario(
      "fabric: {preset: dgx-h100, hosts: 2}\ntraffic:\n  pair: {from: 0, to: 8}\n", folder / "t.yaml");
  const TrafficComparison comparison = compare_traffic(scenario);
  EXPECT_FALSE(comparison.ratio());
  EXPECT_THAT(to_text(comparison),
              HasSubstr("\ntraffic     20.000 ms       50.000 GB/s                 -  "));
  EXPECT_TRUE(nlohmann::json::parse(to_json(comparison))["healthy"].is_null());
}

}  // namespace
}  // namespace isthmus::report
