#include "model/step.hpp"

#include <gmock/gmock.h>

#include "model/scenario_step.hpp"

namespace isthmus {
namespace {

StepTimes times_of(const std::string& lines) {
  const std::string text =
      "model: {config: m.json}\ntrain: {gpus: 10}\ngenerate: {gpus: 20}\n"
      "fabric: {preset: dgx-h100, hosts: 4}\nstep:\n" +
      lines;
  return step_times(*parse_step(text, "s.yaml"), parse_scenario(text, "s.yaml"));
}

const std::string rollout =
    "  rollout: {prompts: 10, samples: 4, tokens: 500, longest: 2000, tokens_per_second_per_gpu: 100,"
    " tokens_per_second_per_sample: 50}\n";

TEST(Step, of_a_throughput_takes_tokens_over_rates) {
  const StepTimes times =
      times_of(rollout + "  training: {tokens_per_second_per_gpu: 200, prompt_tokens: 100}\n" +
               "  prefill: {cached_tokens_per_gpu: 3000, tokens_per_second_per_gpu: 1500}\n");
  EXPECT_EQ(times.tokens, 20'000);
  EXPECT_EQ(times.tokens_per_second, 2'000);
  EXPECT_DOUBLE_EQ(seconds(times.rollout), 10);
  EXPECT_DOUBLE_EQ(seconds(times.tail), 30);  // the longest sample takes 40 s
  EXPECT_DOUBLE_EQ(seconds(times.train), 40 * 600 / 2000.0);
  EXPECT_DOUBLE_EQ(seconds(times.cache), 2);
}

TEST(Step, of_given_times_is_as_given_and_says_nothing_of_tokens) {
  const StepTimes times = times_of("  rollout_time: 3 s\n  train_time: 2 s\n  tail_time: 1 s\n");
  EXPECT_DOUBLE_EQ(seconds(times.rollout), 3);
  EXPECT_DOUBLE_EQ(seconds(times.train), 2);
  EXPECT_DOUBLE_EQ(seconds(times.tail), 1);
  EXPECT_EQ(times.tokens, 0);
}

TEST(Step, that_would_take_days_is_refused_at_its_throughput) {
  try {
    times_of(rollout + "  training: {tokens_per_second_per_gpu: 0.001}\n");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("s.yaml:7: step.training: found 2e+06 s by this throughput"));
  }
}

}  // namespace
}  // namespace isthmus
