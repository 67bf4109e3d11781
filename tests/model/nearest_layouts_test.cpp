#include "model/nearest_layouts.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/refit.hpp"
#include "tests/support/membership_case.hpp"

namespace isthmus {
namespace {

TEST(NearestLayouts, are_valid_and_the_nearest_comes_first) {
  test::MembershipCase made;
  made.train = "{gpus: 32, tp: 2, ep: 16, etp: 1, pp: 1}";
  made.hosts = 9;
  const Scenario scenario = made.scenario();
  for (const int gpus : {8, 24, 40}) {
    const std::vector<TrainSpec> nearest = nearest_train_layouts(scenario, gpus, 3);
    ASSERT_EQ(nearest.size(), 3U);
    for (const TrainSpec& train : nearest) {
      Scenario changed = scenario;
      changed.train = train;
      EXPECT_NO_THROW(resolve(changed)) << layout_text(train);
    }
    EXPECT_EQ(nearest.front().gpus, gpus);
    EXPECT_EQ(nearest.front().tp, 2);
    EXPECT_EQ(nearest.front().ep, 8);
  }
}

TEST(NearestLayouts, offer_other_numbers_of_gpus) {
  test::MembershipCase made;
  made.train = "{gpus: 16, ep: 16, etp: 1}";
  const std::vector<TrainSpec> nearest = nearest_train_layouts(made.scenario(), 24, 10);
  EXPECT_TRUE(std::any_of(nearest.begin(), nearest.end(),
                          [](const TrainSpec& train) { return train.gpus == 16 && train.ep == 16; }));
}

}  // namespace
}  // namespace isthmus
