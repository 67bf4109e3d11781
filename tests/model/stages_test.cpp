#include "model/stages.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::stages_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario scenario_of(const TrainSpec& train, const GenerateSpec& generate = {}) {
  Scenario scenario;
  scenario.file = "s.yaml";
  scenario.train = train;
  scenario.generate = generate;
  return scenario;
}

TrainSpec train_of(int pp, std::optional<int> first = std::nullopt, std::optional<int> last = std::nullopt) {
  return {pp, 1, 1, 1, pp, std::nullopt, first, last};
}

std::vector<int> counts(const StageMap& map) {
  std::vector<int> result(to_size(map.stages), 0);
  for (const int stage : map.of_layer) ++result[to_size(stage)];
  return result;
}

TEST(Stages, follow_first_and_last_and_deal_the_rest_evenly) {  // DeepSeek-V3's published split
  const StageMap map = train_stage_map(scenario_of(train_of(16, 3, 2)), 61);
  EXPECT_THAT(counts(map), ElementsAre(3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2));
  EXPECT_TRUE(std::is_sorted(map.of_layer.begin(), map.of_layer.end()));
}

// Megatron-LM: with v chunks per stage, layer l is on stage (l / (L / (pp v))) mod pp.
RC_GTEST_PROP(Stages, chunks_are_dealt_round_robin, ()) {
  const int pp = *rc::gen::inRange(1, 9), vpp = *rc::gen::inRange(1, 5), chunk = *rc::gen::inRange(1, 5);
  TrainSpec train = train_of(pp);
  train.vpp = vpp;
  const StageMap map = train_stage_map(scenario_of(train), pp * vpp * chunk);
  for (int layer = 0; layer < pp * vpp * chunk; ++layer) {
    RC_ASSERT(map.of_layer[to_size(layer)] == layer / chunk % pp);
  }
}

// Megatron-LM, uneven: a round has F/v + (pp - 2) m/v + Z/v layers, stage s > 0 begins at F/v + (s - 1) m/v.
RC_GTEST_PROP(Stages, chunks_of_uneven_stages_keep_their_shares, ()) {
  const int pp = *rc::gen::inRange(3, 8), vpp = *rc::gen::inRange(1, 4);
  const int first = *rc::gen::inRange(1, 4), middle = *rc::gen::inRange(1, 4), last = *rc::gen::inRange(1, 4);
  TrainSpec train = train_of(pp, first * vpp, last * vpp);
  train.vpp = vpp;
  const int round = first + (pp - 2) * middle + last;
  const StageMap map = train_stage_map(scenario_of(train), round * vpp);
  for (int chunk = 0; chunk < vpp; ++chunk) {
    for (int stage = 0; stage < pp; ++stage) {
      const int begin = chunk * round + (stage == 0 ? 0 : first + (stage - 1) * middle);
      const int size = stage == 0 ? first : stage == pp - 1 ? last : middle;
      for (int layer = begin; layer < begin + size; ++layer) RC_ASSERT(map.of_layer[to_size(layer)] == stage);
    }
  }
}

RC_GTEST_PROP(Stages, of_generation_differ_by_at_most_one_layer_and_spare_the_last, ()) {
  const int pp = *rc::gen::inRange(1, 9), layers = *rc::gen::inRange(pp, 100);
  GenerateSpec generate;
  generate.pp = pp;
  const StageMap map = generate_stage_map(scenario_of({}, generate), layers);
  const std::vector<int> each = counts(map);
  RC_ASSERT(std::accumulate(each.begin(), each.end(), 0) == layers);
  RC_ASSERT(std::is_sorted(map.of_layer.begin(), map.of_layer.end()));
  RC_ASSERT(each.back() == layers / pp);
  for (const int count : each) RC_ASSERT(count == layers / pp || count == layers / pp + 1);
}

TEST(Stages, of_generation_put_what_is_left_over_before_the_last_stage) {
  GenerateSpec generate;
  generate.pp = 4;
  EXPECT_THAT(counts(generate_stage_map(scenario_of({}, generate), 62)), ElementsAre(15, 16, 16, 15));
}

TEST(Stages, follow_a_list_per_stage) {
  TrainSpec train = train_of(3);
  train.stages = {{0, 4}, {}, {1, 2, 3}};
  EXPECT_THAT(train_stage_map(scenario_of(train), 5).of_layer, ElementsAre(0, 2, 2, 2, 0));
}

struct Bad {
  int layers;
  std::function<void(Scenario&)> change;
  std::string key, found;
};

TEST(Stages, name_what_does_not_fit) {
  const std::vector<Bad> all{
      {10, [](Scenario& s) { s.train->pp = 4; }, "train.pp", "10 of 10 layers left for 4 stages"},
      {16, [](Scenario& s) { s.train->pp = 4, s.train->vpp = 3; }, "train.vpp", "3"},
      {4,
       [](Scenario& s) {
         s.train->stages = {{0, 1}, {1, 2, 3}};
       },
       "train.stages", "layer 1 on 2 stages"},
      {4,
       [](Scenario& s) {
         s.train->stages = {{0, 1}, {3}};
       },
       "train.stages", "layer 2 on 0 stages"},
      {4,
       [](Scenario& s) {
         s.train->stages = {{0, 1, 2}, {3, 4}};
       },
       "train.stages", "layer 4"},
      {4,
       [](Scenario& s) {
         s.train->stages = {{0, 1, 2, 3}};
       },
       "train.stages", "lists for 1 stages"},
      {4,
       [](Scenario& s) {
         s.train->stages = {{0, 1}, {2, 3}}, s.train->vpp = 2;
       },
       "train.vpp", "2"},
      {4, [](Scenario& s) { s.generate->pp = 5; }, "generate.pp", "5"},
      {4,
       [](Scenario& s) {
         s.train->stages = {{0, 1, 9, 8}, {2, 3, 7}};
       },
       "train.stages", "layer 9 and 2 more"},
      {4, [](Scenario& s) { s.train->layers_first = 5; }, "train.layers_first",
       "5 layers on the outer stages"},
      {4,
       [](Scenario& s) {
         s.generate->stages = {{0, 1}, {2, 3}};
       },
       "generate.stages", "lists for 2 stages"},
  };
  for (const Bad& bad : all) {
    Scenario scenario = scenario_of(train_of(2));
    bad.change(scenario);
    const std::vector<InputFault> faults = stage_faults(scenario, bad.layers);
    ASSERT_EQ(faults.size(), 1U) << bad.found;
    EXPECT_EQ(faults.front().where.key, bad.key);
    EXPECT_THAT(faults.front().found, HasSubstr(bad.found));
    EXPECT_FALSE(faults.front().change.empty());
  }
}

}  // namespace
}  // namespace isthmus::stages_test
