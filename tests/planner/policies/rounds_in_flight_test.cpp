#include "planner/policies/rounds_in_flight.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/scenario.hpp"
#include "planner/policy.hpp"

namespace isthmus {
namespace {

/// One tensor from the eight GPUs of a host, each of which holds all of it, to those of another.
Refit from_replicas(const std::string& target_placement) {
  return resolve(parse_scenario(fmt::format("tensor: {{shape: [65536, 8192], dtype: bf16}}\n"
                                            "source: {{mesh: [8], first_rank: 0, placements: [replicated]}}\n"
                                            "target: {{mesh: [8], first_rank: 8, placements: [{}]}}\n"
                                            "fabric: {{preset: dgx-h100-superpod, hosts: 2}}\n",
                                            target_placement),
                                "one-tensor.yaml"));
}

std::uint32_t in_flight(const Refit& refit, const std::vector<Transfer>& transfers,
                        const std::vector<std::uint32_t>& rounds) {
  return rounds_in_flight(refit, std::get<Plan>(plan_balanced(refit)), transfers, rounds);
}

/// 256 rounds in which eight ports send to eight others; if uneven, two of them twice as much, by turns.
struct Permutations {
  explicit Permutations(bool uneven) {
    for (std::uint32_t round = 0; round < 256; ++round) {
      for (std::uint32_t port = 0; port < 8; ++port) {
        const bool more = uneven && port < 2 && (round / 4 + port) % 2 == 0;
        transfers.push_back({port, 8 + (port + round) % 8, Bytes{more ? 2000 : 1000}});
        rounds.push_back(round);
      }
    }
  }
  std::vector<Transfer> transfers;
  std::vector<std::uint32_t> rounds;
};

TEST(RoundsInFlight, are_few_where_rounds_are_even_and_nvlink_is_as_busy_as_the_network) {
  const Refit replicas = from_replicas("replicated"), shards = from_replicas("shard(0)");
  const Permutations even(false), uneven(true);
  EXPECT_EQ(in_flight(replicas, even.transfers, even.rounds), few_in_flight);
  EXPECT_EQ(in_flight(replicas, uneven.transfers, uneven.rounds), many_in_flight);
  EXPECT_EQ(in_flight(shards, even.transfers, even.rounds), many_in_flight);  // nothing is passed on
  EXPECT_EQ(in_flight(replicas, {}, {}), many_in_flight);
}

TEST(RoundsInFlight, are_many_in_small_refits) {
  Permutations small(false);
  EXPECT_EQ(in_flight(from_replicas("replicated"), small.transfers, small.rounds), few_in_flight);
  for (std::uint32_t& round : small.rounds) round /= 5;  // 52 rounds
  EXPECT_EQ(in_flight(from_replicas("replicated"), small.transfers, small.rounds), many_in_flight);
}

TEST(RoundsInFlight, are_many_where_there_are_so_many_rounds_that_none_matters) {
  Permutations fine(false);
  const std::size_t count = fine.rounds.size();
  for (std::uint32_t times = 1; times < 16; ++times) {
    for (std::size_t i = 0; i < count; ++i) {
      fine.transfers.push_back(fine.transfers[i]);
      fine.rounds.push_back(fine.rounds[i] + 256 * times);
    }
  }
  EXPECT_EQ(in_flight(from_replicas("replicated"), fine.transfers, fine.rounds), many_in_flight);
}

TEST(RoundsInFlight, stand_in_the_lane_of_the_plan) {
  EXPECT_EQ(std::get<Plan>(plan_balanced(from_replicas("replicated"))).lanes.front().window, few_in_flight);
  EXPECT_EQ(std::get<Plan>(plan_balanced(from_replicas("shard(0)"))).lanes.front().window, many_in_flight);
}

TEST(NvlinkShare, is_the_busiest_ports_time_over_that_of_the_busiest_nic) {
  // An eighth through 50 GB/s; the other seven from neighbours, through 450 GB/s.
  const Refit replicas = from_replicas("replicated"), shards = from_replicas("shard(0)");
  EXPECT_NEAR(nvlink_share(replicas, std::get<Plan>(plan_balanced(replicas))), 7.0 / 9, 1e-6);
  EXPECT_EQ(nvlink_share(shards, std::get<Plan>(plan_balanced(shards))), 0);
}

RC_GTEST_PROP(Unevenness, is_what_stretches_take_one_after_another, ()) {
  std::vector<Transfer> transfers;
  std::vector<std::uint32_t> rounds;
  for (int i = *rc::gen::inRange(0, 100); i > 0; --i) {
    transfers.push_back({*rc::gen::inRange(0U, 5U), *rc::gen::inRange(0U, 5U),
                         Bytes{*rc::gen::inRange<std::int64_t>(1, 1000)}});
    rounds.push_back(*rc::gen::inRange(0U, 20U));
  }
  const auto stretch = *rc::gen::inRange(1U, 8U);
  std::map<std::pair<bool, std::uint32_t>, std::map<std::uint32_t, std::int64_t>> ports;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    ports[{false, transfers[i].source}][rounds[i] / stretch] += transfers[i].bytes.value;
    ports[{true, transfers[i].target}][rounds[i] / stretch] += transfers[i].bytes.value;
  }
  std::map<std::uint32_t, std::int64_t> longest;
  std::int64_t busiest = 0, lockstep = 0;
  for (const auto& [port, stretches] : ports) {
    std::int64_t all = 0;
    for (const auto& [number, bytes] : stretches) {
      longest[number] = std::max(longest[number], bytes);
      all += bytes;
    }
    busiest = std::max(busiest, all);
  }
  for (const auto& [number, bytes] : longest) lockstep += bytes;
  const double expected = busiest == 0 ? 0 : static_cast<double>(lockstep) / static_cast<double>(busiest) - 1;
  RC_ASSERT(unevenness(transfers, rounds, stretch) == expected);
}

}  // namespace
}  // namespace isthmus
