// The main scenario end to end, and that each of its settings moves the figures as the model says.

#include "report/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <future>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

const std::filesystem::path main_scenario = project_folder() / "scenarios/deepseek-v3-h100.yaml";

Comparison run(const std::vector<Override>& overrides, const std::vector<std::string>& names,
               const std::string& name = "deepseek-v3-h100") {
  const Scenario scenario = read_scenario(main_scenario.parent_path() / (name + ".yaml"), overrides);
  const Calibration calibration = read_calibration(scenario.calibration, scenario.file.parent_path());
  return compare(resolve(scenario), scenario.published, calibration, names);
}

const std::vector<std::string> all{"golden", "gather-broadcast", "p2p", "striped", "balanced"};

TEST(DeepSeekV3, has_the_published_number_of_parameters_and_bulk_share) {
  const Comparison result = run({}, {"p2p"});
  EXPECT_EQ(result.totals.parameters, 671'026'419'200);
  EXPECT_EQ(result.totals.bytes.value, 1'342'052'838'400);
  EXPECT_EQ(result.payload, result.totals.bytes);
  EXPECT_EQ(result.wire.bytes, result.totals.bytes);
  EXPECT_EQ(result.wire.bulk_fraction(), result.totals.bulk_fraction());
  EXPECT_NEAR(result.totals.bulk_fraction(), 0.976262, 5e-7);
}

TEST(DeepSeekV3, is_bound_by_what_a_generation_host_must_take_in) {
  // Per host: 8 of 32 shards of what tp shards, and once what every engine holds whole (q_a, kv_a, router,
  // norms).
  const Comparison result = run({}, {"p2p"});
  const double replicated =
      2.0 * (61 * (1536.0 * 7168 + 576.0 * 7168 + 2 * 7168 + 1536 + 512) + 58 * (256.0 * 7168 + 256) + 7168);
  const double host = (1'342'052'838'400.0 - replicated) / 4 + replicated;
  EXPECT_NEAR(seconds(result.bound.time), host / 400e9, 1e-9);
  EXPECT_LE(result.bound.any_route, result.bound.time);
}

TEST(DeepSeekV3, is_proven_predicted_and_bounded_for_every_policy) {
  const Comparison result = run({}, all);
  ASSERT_EQ(result.policies.size(), all.size());
  for (const PolicyRow& row : result.policies) {
    EXPECT_TRUE(row.proven) << row.policy;
    EXPECT_GE(row.seconds, seconds(result.bound.time)) << row.policy;
    EXPECT_NEAR(row.bulk_seconds + row.misc_seconds + row.other_seconds, row.seconds, 1e-9) << row.policy;
    EXPECT_GE(row.software_seconds, 0) << row.policy;
  }
  EXPECT_EQ(result.fastest()->policy, "balanced");
}

TEST(Comparison, gives_the_same_digests_twice) {
  const Comparison once = run({}, all, "qwen3-30b-a3b-h100"), again = run({}, all, "qwen3-30b-a3b-h100");
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(once.policies[i].digest, again.policies[i].digest) << all[i];
  }
}

/// Digests of a scenario's predictions, each policy calibrated and wire-only.
std::vector<std::uint64_t> digests(const Refit& refit, const Calibration& calibration,
                                   const std::vector<Policy>& in_order) {
  std::vector<std::uint64_t> found;
  for (const Policy& policy : in_order) {
    const PlanResult result = policy.make(refit);
    if (std::holds_alternative<Refused>(result)) continue;
    const Operations operations = expand(refit, std::get<Plan>(result));
    const sim::Simulator simulator(refit, operations);
    for (const Calibration& costs : {calibration, wire_only()})
      found.push_back(simulator.run(costs).timeline.digest());
  }
  return found;
}

class SmallScenario : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Predictions, SmallScenario,
                         testing::Values("qwen3-4b-h100", "qwen3-4b-h100-native-dp8-dp8",
                                         "qwen3-4b-h100-native-dp8-tp8", "qwen3-4b-h100-native-pp2dp4-tp4dp2",
                                         "qwen3-4b-h100-native-pp4dp2-tp4dp2",
                                         "qwen3-4b-h100-native-tp2dp4-tp4dp2",
                                         "qwen3-4b-h100-native-tp2pp2dp2-tp4dp2", "dense-27b-efa-8-8",
                                         "marin-gb200-1-1", "qwen3-32b-nvl72", "verl-gh200-one-nic"));

/// Plans and simulations share nothing: neither what ran before nor what runs beside moves a bit.
TEST_P(SmallScenario, is_predicted_the_same_bit_by_bit_in_every_run_and_on_one_or_two_threads) {
  const Scenario scenario = read_scenario(main_scenario.parent_path() / (GetParam() + ".yaml"));
  const Calibration calibration = read_calibration(scenario.calibration, scenario.file.parent_path());
  const Refit refit = resolve(scenario);
  const std::vector<Policy> forwards(policies().begin(), policies().end());
  const std::vector<Policy> backwards(forwards.rbegin(), forwards.rend());
  const std::vector<std::uint64_t> alone = digests(refit, calibration, forwards);
  EXPECT_GE(alone.size(), 6U);
  const auto on_a_thread = [&](const std::vector<Policy>& order) {
    return std::async(std::launch::async, [&] { return digests(resolve(scenario), calibration, order); });
  };
  auto first = on_a_thread(forwards), second = on_a_thread(backwards);
  EXPECT_EQ(first.get(), alone);
  std::vector<std::uint64_t> turned = second.get(), sorted = alone;
  std::sort(turned.begin(), turned.end());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(turned, sorted);
}

TEST(Setting, halving_the_nics_doubles_the_bound_and_the_wire_time_and_moves_no_byte_more) {
  const Override wire{"calibration", "wire-only"}, half_rate{"fabric.nic_bandwidth", "200 Gbit/s"};
  const Comparison full = run({wire}, {"p2p"}), half = run({wire, half_rate}, {"p2p"});
  EXPECT_NEAR(seconds(half.bound.time), 2 * seconds(full.bound.time), 1e-9);
  EXPECT_NEAR(half.policies[0].seconds, 2 * full.policies[0].seconds, 1e-6);
  EXPECT_EQ(half.policies[0].network_bytes, full.policies[0].network_bytes);
}

TEST(Setting, doubling_the_streams_speeds_up_p2p_which_goes_stage_by_stage_and_leaves_balanced_alone) {
  const Comparison two = run({}, {"p2p", "balanced"});
  const Comparison four = run({{"refit.streams", "4"}}, {"p2p", "balanced"});
  EXPECT_LT(four.policies[0].seconds, 0.75 * two.policies[0].seconds);
  EXPECT_EQ(four.policies[1].digest, two.policies[1].digest);
}

TEST(Setting, swapping_two_hosts_swaps_what_their_nics_carry) {
  // Host 31 (the last stage) changes places with host 63 (the last engine).
  const std::vector<Override> swapped{{"ranks.train.hosts", "[0-30, 63]"},
                                      {"ranks.generate.hosts", "[32-62, 31]"}};
  const auto sent = [](const std::vector<Override>& overrides, std::uint32_t host) {
    const Refit refit = resolve(read_scenario(main_scenario, overrides));
    const Operations operations = expand(refit, std::get<Plan>(plan_p2p(refit)));
    const sim::Prediction prediction = sim::simulate(refit, operations, wire_only());
    Bytes bytes;
    for (std::size_t local = 0; local < 8; ++local) {
      const LinkId port = *refit.fabric.nic_out(refit.fabric.gpu_at(HostId{host}, local));
      bytes += prediction.timeline.link_bytes[port.index()];
    }
    return bytes;
  };
  const Bytes by_trainers = sent({}, 31);
  EXPECT_GT(by_trainers.value, 0);
  EXPECT_EQ(sent({}, 63).value, 0);
  EXPECT_EQ(sent(swapped, 63), by_trainers);
  EXPECT_EQ(sent(swapped, 31).value, 0);
}

TEST(Setting, dropping_an_expert_layer_drops_exactly_its_bytes) {
  const Comparison full = run({{"refit.streams", "1"}}, {"p2p"});  // one stage after the other
  const Comparison fewer =
      run({{"refit.streams", "1"}, {"model.layers", "60"}, {"train.layers_last", "1"}}, {"p2p"});
  const std::int64_t experts = 3LL * 256 * 2048 * 7168, shared = 3LL * 2048 * 7168, router = 256 * 7168 + 256;
  const std::int64_t attention =
      1536LL * 7168 + 24576LL * 1536 + 576LL * 7168 + 32768LL * 512 + 7168LL * 16384 + 1536 + 512 + 2 * 7168;
  EXPECT_EQ(full.payload.value - fewer.payload.value, 2 * (experts + shared + router + attention));
  EXPECT_LT(fewer.policies[0].seconds, full.policies[0].seconds);
  EXPECT_LT(fewer.policies[0].network_bytes, full.policies[0].network_bytes);
}

TEST(Setting, all_as_bulk_leaves_no_misc_time) {
  const Comparison result = run({{"refit.bulk", "all"}}, {"balanced"});
  EXPECT_EQ(result.policies[0].misc_seconds, 0);
}

TEST(ComparisonJson, has_the_documented_keys_and_the_values_of_the_table) {
  const Comparison result = run({}, {"balanced"});
  const nlohmann::json document = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(document["parameters"], 671'026'419'200);
  const nlohmann::json& row = document["policies"][0];
  for (const char* key :
       {"policy", "seconds", "bulk_seconds", "misc_seconds", "other_seconds", "software_seconds",
        "efficiency", "network_bytes", "nvlink_bytes", "peak_staging_bytes", "full_tensor_materialised",
        "setup_seconds", "binding_resource", "proven", "plan_wall_seconds", "check_wall_seconds",
        "simulate_wall_seconds"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row["seconds"], result.policies[0].seconds);
}

TEST(ComparisonJson, has_terms_that_add_up_to_the_time_in_picoseconds) {
  const nlohmann::json document =
      nlohmann::json::parse(to_json(run({}, {"striped", "m2n-uniform", "balanced"})));
  const auto picoseconds = [](const nlohmann::json& time) { return std::llround(time.get<double>() * 1e12); };
  for (const nlohmann::json& row : document["policies"]) {
    std::int64_t sum = 0, bulk = 0, misc = 0;
    for (const nlohmann::json& term : row["terms"]) {
      sum += picoseconds(term["seconds"]);
      bulk += picoseconds(term["bulk_seconds"]);
      misc += picoseconds(term["misc_seconds"]);
    }
    EXPECT_EQ(sum, picoseconds(row["seconds"]));
    EXPECT_EQ(bulk, picoseconds(row["bulk_seconds"]));
    EXPECT_EQ(misc, picoseconds(row["misc_seconds"]));
    EXPECT_FALSE(row.contains("activity"));
  }
}

TEST(ComparisonJson, has_series_of_links_and_ranks_where_asked_for) {
  const Scenario scenario = read_scenario(main_scenario.parent_path() / "qwen3-30b-a3b-h100.yaml");
  const Refit refit = resolve(scenario);
  const Calibration calibration = read_calibration(scenario.calibration, scenario.file.parent_path());
  const Comparison result = compare(refit, {}, calibration, {"striped"}, 10);
  const nlohmann::json activity = nlohmann::json::parse(to_json(result))["policies"][0]["activity"];
  EXPECT_EQ(activity["ranks"].size(), refit.ranks());
  EXPECT_GE(activity["step_seconds"].get<double>() * 10, result.policies[0].seconds);
  ASSERT_FALSE(activity["links"].empty());
  for (const nlohmann::json& link : activity["links"]) {
    EXPECT_EQ(link["load"].size(), 10U);
    EXPECT_GT(link["bytes"], 0);
    EXPECT_LE(link["busy_seconds"].get<double>(), result.policies[0].seconds);
  }
}

TEST(ComparisonTable, says_what_the_time_consists_of_the_longest_first) {
  const std::string text = to_table(run({}, {"p2p"}));
  EXPECT_NE(text.find("  p2p: "), std::string::npos) << text;
  EXPECT_LT(text.find("waiting for a lane (misc)"), text.find("network wire (misc)")) << text;  // stages
}

}  // namespace
}  // namespace isthmus::report
