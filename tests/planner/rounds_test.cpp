#include "planner/rounds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/plain_rounds.hpp"

namespace isthmus {
namespace {

/// Transfers among eight ports a side, of up to `largest` bytes.
std::vector<Transfer> random_transfers(std::int64_t largest) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 200);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < count; ++i) {
    transfers.push_back({*rc::gen::inRange<std::uint32_t>(0, 8),
                         *rc::gen::inRange<std::uint32_t>(0, 8),
                         {*rc::gen::inRange<std::int64_t>(1, largest + 1)}});
  }
  return transfers;
}

/// Transfers of each port, senders first: their rounds in order.
std::map<std::pair<bool, std::uint32_t>, std::vector<std::uint32_t>> rounds_of_ports(
    const std::vector<Transfer>& transfers, const std::vector<std::uint32_t>& rounds) {
  std::map<std::pair<bool, std::uint32_t>, std::vector<std::uint32_t>> ports;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    ports[{false, transfers[i].source}].push_back(rounds[i]);
    ports[{true, transfers[i].target}].push_back(rounds[i]);
  }
  for (auto& [port, list] : ports) std::sort(list.begin(), list.end());
  return ports;
}

RC_GTEST_PROP(Rounds, give_every_port_equal_transfers_at_an_even_pace, ()) {
  std::vector<Transfer> transfers;  // at most one of each pair: what a pair has more is joined
  for (std::uint32_t pair = 0; pair < 256; ++pair)
    if (*rc::gen::arbitrary<bool>()) transfers.push_back({pair / 16, pair % 16, {1}});
  const std::uint32_t wanted = 1U << *rc::gen::inRange(0U, 5U);
  const auto rounds = order_rounds(transfers, {}, {wanted, Bytes{1}, 1});
  const auto ports = rounds_of_ports(transfers, rounds);
  std::size_t busiest = 0;
  for (const auto& [port, list] : ports) busiest = std::max(busiest, list.size());
  const auto count = std::min<std::size_t>(wanted, std::bit_floor(std::max<std::size_t>(1, busiest)));
  for (const auto& [port, list] : ports) {
    RC_ASSERT(list.back() < count);
    // Each halving gives a port half of its transfers, rounded up or down.
    const auto all = static_cast<double>(list.size());
    for (std::uint32_t round = 0; round < count; ++round) {
      const auto [first, last] = std::equal_range(list.begin(), list.end(), round);
      const auto here = static_cast<double>(last - first);
      RC_ASSERT(std::abs(here - all / static_cast<double>(count)) < 1);
      const auto before = static_cast<double>(first - list.begin());
      const double levels = std::log2(static_cast<double>(count));
      RC_ASSERT(std::abs(before - all * round / static_cast<double>(count)) <= levels);
    }
  }
}

RC_GTEST_PROP(Rounds, keep_ports_near_their_pace_in_bytes, ()) {
  const std::vector<Transfer> transfers = random_transfers(1000);
  const auto rounds = order_rounds(transfers, {}, {16, Bytes{1000}, 1});
  std::map<std::pair<bool, std::uint32_t>, std::vector<double>> ports;
  double busiest = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    for (const auto& port : {std::pair{false, transfers[i].source}, std::pair{true, transfers[i].target}}) {
      std::vector<double>& bytes = ports.try_emplace(port, 17, 0.0).first->second;
      bytes[rounds[i]] += static_cast<double>(transfers[i].bytes.value);
      bytes[16] += static_cast<double>(transfers[i].bytes.value);
      busiest = std::max(busiest, bytes[16]);
    }
  }
  const double count = std::clamp(std::exp2(std::floor(std::log2(std::max(1.0, busiest / 1000)))), 1.0, 16.0);
  // A slot has at most a unit and a half and a transfer; ports deviate by at most one at each halving.
  const double most = (1.5 * busiest / count + 1000) * std::log2(count);
  for (const auto& [port, bytes] : ports) {
    double before = 0;
    for (std::size_t round = 0; static_cast<double>(round) < count; ++round) {
      RC_ASSERT(std::abs(before - bytes[16] * static_cast<double>(round) / count) <= most);
      before += bytes[round];
    }
    RC_ASSERT(before == bytes[16]);
  }
}

RC_GTEST_PROP(Rounds, put_feeds_before_what_they_feed, ()) {
  const std::vector<Transfer> transfers = random_transfers(1000);
  const auto lag = *rc::gen::inRange<std::uint32_t>(1, 20);
  std::vector<Feed> feeds;
  for (std::uint32_t i = 1; i < transfers.size(); ++i) {
    while (*rc::gen::arbitrary<bool>()) feeds.push_back({i, *rc::gen::inRange<std::uint32_t>(0, i)});
  }
  const auto rounds = order_rounds(transfers, feeds, {64, Bytes{100}, lag});
  for (const Feed& feed : feeds) RC_ASSERT(rounds[feed.feed] + lag <= rounds[feed.transfer]);
}

RC_GTEST_PROP(Rounds, are_no_smaller_than_asked, ()) {
  const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 5000));
  std::vector<Transfer> transfers;
  std::int64_t all = 0;
  for (const std::int64_t size : sizes) {
    transfers.push_back({0, 1, {size}});
    all += size;
  }
  const auto rounds = order_rounds(transfers, {}, {1U << 20U, Bytes{1000}, 1});
  RC_ASSERT(rounds.size() == transfers.size());
  for (const std::uint32_t round : rounds)
    RC_ASSERT(std::int64_t{round} < std::max<std::int64_t>(1, all / 1000));
}

RC_GTEST_PROP(Rounds, follow_from_the_transfers_alone, ()) {
  const std::vector<Transfer> transfers = random_transfers(1000);
  const RoundsWanted wanted{32, Bytes{100}, 1};
  RC_ASSERT(order_rounds(transfers, {}, wanted) == order_rounds(transfers, {}, wanted));
}

/// Feeds of some transfers, each an earlier one.
std::vector<Feed> random_feeds(std::size_t transfers) {
  std::vector<Feed> feeds;
  for (std::uint32_t i = 1; i < transfers; ++i) {
    if (*rc::gen::inRange(0, 3) == 0) feeds.push_back({i, *rc::gen::inRange<std::uint32_t>(0, i)});
  }
  return feeds;
}

RC_GTEST_PROP(Rounds, are_those_of_the_plain_algorithm, ()) {
  std::vector<Transfer> transfers = random_transfers(*rc::gen::element<std::int64_t>(1, 1000));
  // Far apart, a port's partners are sorted; near each other, they are counted.
  const std::uint32_t apart = *rc::gen::element(1U, 1000U);
  for (Transfer& transfer : transfers) transfer.target *= apart;
  const std::vector<Feed> feeds =
      *rc::gen::arbitrary<bool>() ? random_feeds(transfers.size()) : std::vector<Feed>{};
  const RoundsWanted wanted{1U << *rc::gen::inRange(0U, 8U), Bytes{*rc::gen::element(1, 100, 1000)}, 3,
                            *rc::gen::element(0U, 2U, 5U), *rc::gen::element(0U, 1U, 2U, 4U)};
  RC_ASSERT(order_rounds(transfers, feeds, wanted) == test::plain_rounds(transfers, feeds, wanted));
}

TEST(Rounds, of_an_all_to_all_are_permutations) {
  std::vector<Transfer> transfers;
  for (std::uint32_t s = 0; s < 16; ++s) {
    for (std::uint32_t t = 0; t < 16; ++t) transfers.push_back({s, 16 + t, {100}});
  }
  const auto rounds = order_rounds(transfers, {}, {16, Bytes{100}, 1});
  for (const auto& [port, list] : rounds_of_ports(transfers, rounds)) {
    for (std::uint32_t round = 0; round < 16; ++round) EXPECT_EQ(list[round], round);
  }
}

RC_GTEST_PROP(Rounds, at_the_end_are_halved_without_a_change_of_those_before, ()) {
  const std::vector<Transfer> transfers = random_transfers(1000);
  RC_PRE(!transfers.empty());
  const auto plain = order_rounds(transfers, {}, {32, Bytes{100}});
  const auto halved = order_rounds(transfers, {}, {32, Bytes{100}, 1, 0, 4});
  const std::uint32_t count = 1 + *std::max_element(plain.begin(), plain.end());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (plain[i] + 4 < count || halved == plain) {
      RC_ASSERT(halved[i] == plain[i]);
    } else {
      RC_ASSERT(halved[i] >= count - 4);
      RC_ASSERT(halved[i] < count + 4);
    }
  }
}

TEST(Rounds, at_the_end_hold_half_as_much_where_halved) {
  std::vector<Transfer> transfers(256, Transfer{0, 1, {100}});
  const auto rounds = order_rounds(transfers, {}, {32, Bytes{400}, 1, 0, 8});
  for (std::uint32_t round = 0; round < 40; ++round)
    EXPECT_EQ(std::count(rounds.begin(), rounds.end(), round), round < 24 ? 8 : 4);
  EXPECT_EQ(order_rounds(transfers, {}, {32, Bytes{401}, 1, 0, 8}),
            order_rounds(transfers, {}, {32, Bytes{401}}));
}

TEST(Rounds, keep_a_sixteenth_of_them_between_what_feeds_and_what_is_fed) {
  std::vector<Transfer> transfers(256, Transfer{0, 1, {100}});
  std::vector<Feed> feeds;
  for (std::uint32_t i = 128; i < 256; ++i) feeds.push_back({i, i - 128});
  for (const auto& [rounds, most, lag] : {std::tuple{128U, 16U, 8U}, {128U, 4U, 4U}, {32U, 16U, 3U}}) {
    const auto numbers = order_rounds(transfers, feeds, {rounds, Bytes{100}, 3, most});
    for (const Feed& feed : feeds) EXPECT_EQ(numbers[feed.transfer], numbers[feed.feed] + lag);
  }
}

TEST(Rounds, of_nothing_are_none) { EXPECT_TRUE(order_rounds({}, {}, {}).empty()); }

}  // namespace
}  // namespace isthmus
