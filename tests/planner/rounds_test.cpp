#include "planner/rounds.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

std::vector<Transfer> random_transfers() {
  const auto count = *rc::gen::inRange<std::size_t>(0, 200);
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < count; ++i) {
    transfers.push_back({*rc::gen::inRange<std::uint32_t>(0, 8),
                         *rc::gen::inRange<std::uint32_t>(0, 8),
                         {*rc::gen::inRange<std::int64_t>(1, 1000)}});
  }
  return transfers;
}

RC_GTEST_PROP(Rounds, load_no_port_much_beyond_a_unit, ()) {
  const std::vector<Transfer> transfers = random_transfers();
  const Bytes unit{500}, largest{1000};
  const auto rounds = match_rounds(transfers, {}, unit);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> sent, received;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    sent[{rounds[i], transfers[i].source}] += transfers[i].bytes;
    received[{rounds[i], transfers[i].target}] += transfers[i].bytes;
  }
  // Whole transfers: the last one of a pair may stick out by half of itself, or be larger than a unit by
  // itself.
  for (const auto& ports : {sent, received}) {
    for (const auto& [port, bytes] : ports) RC_ASSERT(bytes <= unit + largest);
  }
}

RC_GTEST_PROP(Rounds, put_feeds_before_what_they_feed, ()) {
  const std::vector<Transfer> transfers = random_transfers();
  std::vector<Feed> feeds;
  for (std::uint32_t i = 1; i < transfers.size(); ++i) {
    if (*rc::gen::arbitrary<bool>()) feeds.push_back({i, *rc::gen::inRange<std::uint32_t>(0, i)});
  }
  const auto rounds = match_rounds(transfers, feeds, Bytes{500});
  for (const Feed& feed : feeds) RC_ASSERT(rounds[feed.feed] < rounds[feed.transfer]);
}

RC_GTEST_PROP(Rounds, place_transfers_of_any_size_beside_the_unit, ()) {
  const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 5000));
  std::vector<Transfer> transfers;
  for (const std::int64_t size : sizes) transfers.push_back({0, 1, {size}});
  RC_ASSERT(match_rounds(transfers, {}, Bytes{1000}).size() == transfers.size());
}

TEST(Rounds, serve_first_what_others_wait_for) {
  // 0 -> 1 feeds 1 -> 2; 0 has more for 3 than for 1.
  const std::vector<Transfer> transfers{{0, 3, {100}}, {0, 3, {100}}, {0, 1, {100}}, {1, 2, {100}}};
  const auto rounds = match_rounds(transfers, {{3, 2}}, Bytes{100});
  EXPECT_EQ(rounds[2], 0U);
  EXPECT_EQ(rounds[3], 1U);
}

TEST(Rounds, of_an_all_to_all_with_equal_units_are_as_many_as_partners) {
  std::vector<Transfer> transfers;
  for (std::uint32_t s = 0; s < 16; ++s) {
    for (std::uint32_t t = 0; t < 16; ++t) transfers.push_back({s, 16 + t, {100}});
  }
  const auto rounds = match_rounds(transfers, {}, Bytes{100});
  // A perfect order needs 16; the greedy one may need a few more.
  EXPECT_LE(*std::max_element(rounds.begin(), rounds.end()), 18U);
}

}  // namespace
}  // namespace isthmus
