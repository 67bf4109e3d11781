#include "model/sweep_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"

namespace isthmus::sweep_space_test {
namespace {

const std::string plain =
    "name: space\n"
    "model: {config: config.json}\n"
    "fabric: {preset: dgx-h100, hosts: 4}\n"
    "train: {gpus: 16, tp: [1, 2], pp: {from: 1, to: 8}}\n"
    "generate: {gpus: {from: 8, to: 24, step: 8}, tp: [2, 4]}\n";

std::string refusal_of(const std::string& text) {
  try {
    parse_sweep_space(text, "space.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SweepSpace, reads_values_lists_and_ranges) {
  const SweepSpace space = parse_sweep_space(plain, "space.yaml");
  EXPECT_EQ(space.train.gpus, std::vector<int>{16});
  EXPECT_EQ(space.train.tp, (std::vector<int>{1, 2}));
  EXPECT_EQ(space.train.pp, (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(space.generate.gpus, (std::vector<int>{8, 16, 24}));
  EXPECT_EQ(space.layouts(), 2 * 4 * 3 * 2);
  EXPECT_EQ(space.policies, std::vector<std::string>{"all"});
  EXPECT_EQ(space.placements, std::vector<PlacementKind>{PlacementKind::contiguous});
}

TEST(SweepSpace, overrides_replace_values) {
  const SweepSpace space =
      parse_sweep_space(plain, "space.yaml", {{"train.tp", "[4]"}, {"refit.streams", "[1, 3]"}});
  EXPECT_EQ(space.train.tp, std::vector<int>{4});
  EXPECT_EQ(space.streams, (std::vector<int>{1, 3}));
}

TEST(SweepSpace, names_line_key_and_what_is_allowed) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal_of(plain + "placements: [contiguous, scattered]\n"),
              ::testing::AllOf(HasSubstr("space.yaml:6: placements"), HasSubstr("'scattered'"),
                               HasSubstr("rail-aligned")));
  EXPECT_THAT(refusal_of(plain + "budgets: 3\n"), HasSubstr("budget"));
  EXPECT_THAT(refusal_of(plain + "refit: {bulk: [ffn, ffn]}\n"), HasSubstr("each value once"));
  EXPECT_THAT(refusal_of(plain + "memory: {gpu: 80}\n"), HasSubstr("a size above zero with its unit"));
  EXPECT_THAT(
      refusal_of("name: x\nmodel: {config: c}\nfabric: {preset: dgx-h100, hosts: 1}\ntrain: {tp: 1}\n"),
      HasSubstr("train.gpus"));
  EXPECT_THAT(refusal_of(plain + "placements: interleaved\nbudget: 32\n"), "accepted");
}

TEST(SweepSpace, refuses_more_than_can_be_enumerated) {
  std::string text = plain;
  std::string many = "[1";
  for (int i = 2; i <= 200; ++i) many += ", " + std::to_string(i);
  text.replace(text.find("[1, 2]"), 6, many + "], cp: " + many + "], ep: " + many + "]");
  EXPECT_THAT(refusal_of(text), ::testing::HasSubstr("at most 5000000 layouts"));
}

}  // namespace
}  // namespace isthmus::sweep_space_test
