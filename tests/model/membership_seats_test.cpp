#include "model/membership_seats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/membership_case.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;

TEST(MembershipSeats, keep_who_can_stay) {
  const HeldTable alike{{5, 5, 5}, {5, 5, 5}};
  EXPECT_THAT(best_seats(alike, {7, 8, 9}, {7, 8, 9}, {}), ElementsAre(7, 8));
  EXPECT_THAT(best_seats(alike, {7, 8, 9}, {8, 9, 3}, {}), ElementsAre(9, 8)) << "8 stays on its seat";
}

TEST(MembershipSeats, lose_the_fewest_bytes) {
  const HeldTable held{{10, 9}, {9, 0}};
  EXPECT_THAT(best_seats(held, {7, 8}, {7, 8}, {}), ElementsAre(8, 7));
  EXPECT_THAT(best_seats(held, {7, 8}, {7, 8}, {8}), ElementsAre(7, 8)) << "8 comes back empty";
}

TEST(MembershipSeats, keep_whole_replicas_together) {
  const std::vector<int> now{10, 11, 20, 21, 30, 31, 40, 41};
  EXPECT_THAT(seats_of_whole_units(6, 2, now, {20}), ElementsAre(10, 11, 40, 41, 30, 31));
  EXPECT_THAT(seats_of_whole_units(8, 2, now, {20, 41}), ElementsAre(10, 11, -1, -1, 30, 31, -1, -1));
  const HeldTable alike(4, std::vector<std::int64_t>{5, 5, 5, 5});
  EXPECT_THAT(best_seats(alike, {1, 2, 3, 4}, {1, 2, 3, 4}, {}, {-1, 1, 4}), ElementsAre(2, 1, 4, 3))
      << "given seats stay given";
}

TEST(MembershipSeats, hold_what_layouts_say) {
  test::MembershipCase made;
  made.generate = "{gpus: 32, tp: 16}";
  const Refit refit = resolve(made.scenario());
  const HeldBytes held = held_bytes(refit, refit);
  ASSERT_EQ(held.generate.size(), 4U);
  EXPECT_EQ(held.generate[0][0], held.generate[0][2]) << "replicas";
  EXPECT_GT(held.generate[0][0], held.generate[0][1]) << "another half";
  std::int64_t bytes = 0, diagonal = 0;
  for (const RefitEntry& entry : refit.tensors) {
    const Layout& target = refit.geometries[entry.geometry].target;
    for (const Region& region : target.regions()) bytes += target.bytes(region).value;
  }
  for (std::size_t seat = 0; seat < 4; ++seat) diagonal += held.generate[seat][seat];
  EXPECT_EQ(diagonal, bytes);
}

}  // namespace
}  // namespace isthmus
