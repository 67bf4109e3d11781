#include "planner/halving.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/plain_rounds.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t senders = 6, ports = 13;

/// Up to 150 slots, of few sizes and kinds, so that many are alike.
std::vector<HalvingSlot> random_slots() {
  const auto count = *rc::gen::inRange<std::size_t>(0, 150);
  const auto largest = *rc::gen::element<std::int64_t>(1, 5, 1'000'000'000'000);
  std::vector<HalvingSlot> slots;
  for (std::size_t i = 0; i < count; ++i)
    slots.push_back({*rc::gen::inRange(0U, senders), *rc::gen::inRange(senders, ports),
                     *rc::gen::inRange(0U, 3U),
                     static_cast<double>(*rc::gen::inRange<std::int64_t>(1, largest + 1))});
  return slots;
}

RC_GTEST_PROP(Halving, gives_the_rounds_of_the_plain_algorithm, ()) {
  const std::vector<HalvingSlot> slots = random_slots();
  const auto levels = *rc::gen::inRange(0U, 8U);
  RC_ASSERT(rounds_by_halving(slots, ports, levels) == test::plain_halving(slots, levels));
}

RC_GTEST_PROP(Halving, divides_each_ports_slots_in_two_at_every_level, ()) {
  const std::vector<HalvingSlot> slots = random_slots();
  const auto levels = *rc::gen::inRange(0U, 8U);
  const auto rounds = rounds_by_halving(slots, ports, levels);
  for (std::uint32_t level = 0; level < levels; ++level) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<int, 2>>
        halves;  // by port and range of rounds
    for (std::size_t i = 0; i < slots.size(); ++i) {
      RC_ASSERT(rounds[i] < 1U << levels);
      const std::uint32_t range = rounds[i] >> (levels - level);
      const std::uint32_t half = rounds[i] >> (levels - level - 1) & 1U;
      for (const std::uint32_t port : {slots[i].source, slots[i].target}) ++halves[{port, range}][half];
    }
    for (const auto& [where, count] : halves) RC_ASSERT(std::abs(count[0] - count[1]) <= 1);
  }
}

TEST(Halving, of_nothing_is_nothing) { EXPECT_TRUE(rounds_by_halving({}, 0, 4).empty()); }

TEST(Halving, puts_all_slots_into_the_one_round_that_there_is) {
  EXPECT_EQ(rounds_by_halving({{0, 1, 0, 5}, {0, 1, 0, 7}}, 2, 0), (std::vector<std::uint32_t>{0, 0}));
}

}  // namespace
}  // namespace isthmus
