#include "model/scenario_step.hpp"

#include <gmock/gmock.h>

namespace isthmus::scenario_step_test {
namespace {

using ::testing::HasSubstr;

const std::string refit_lines =
    "model: {config: m.json}\n"
    "train: {gpus: 8}\n"
    "generate: {gpus: 8}\n"
    "fabric: {preset: dgx-h100, hosts: 2}\n";

StepSpec read(const std::string& lines) { return *parse_step(refit_lines + "step:\n" + lines, "s.yaml"); }

/// What both readers say of it.
std::string refusal(const std::string& lines) {
  const std::string text = refit_lines + "step:\n" + lines;
  std::string by_step, by_scenario;
  try {
    parse_step(text, "s.yaml");
  } catch (const InputError& error) {
    by_step = error.what();
  }
  try {
    parse_scenario(text, "s.yaml");
  } catch (const InputError& error) {
    by_scenario = error.what();
  }
  EXPECT_EQ(by_step, by_scenario) << lines;
  return by_step;
}

const std::string phases = "  rollout_time: 40 s\n  train_time: 20 s\n";

TEST(ScenarioStep, is_absent_where_a_scenario_does_not_have_it) {
  EXPECT_FALSE(parse_step(refit_lines, "s.yaml").has_value());
}

TEST(ScenarioStep, is_synchronous_and_drains_unless_told_otherwise) {
  const StepSpec step = read(phases);
  StepSpec usual;
  usual.rollout_time = Duration{40 * picoseconds_per_second};
  usual.train_time = Duration{20 * picoseconds_per_second};
  EXPECT_EQ(step, usual);
}

TEST(ScenarioStep, reads_every_key) {
  const StepSpec step = read(
      "  schedule: asynchronous\n  staleness: 3\n  during_refit: generate\n"
      "  rollout: {prompts: 64, samples: 16, tokens: 1000, longest: 4000, tokens_per_second_per_gpu: 500,\n"
      "            tokens_per_second_per_sample: 40.5}\n"
      "  training: {tokens_per_second_per_gpu: 700, prompt_tokens: 100}\n"
      "  tail_time: 1 s\n  reward_time: 2 s\n  load_time: 3 s\n  pause_time: 4 s\n  kv_cache: recompute\n"
      "  prefill: {cached_tokens_per_gpu: 5000, tokens_per_second_per_gpu: 9000}\n"
      "  decode: {nvlink: 0.1, nic: 0.2, memory: 0.3, sm: 0.4, flows: 5, sms: 144}\n  ctas: 16\n  steps: "
      "50\n");
  EXPECT_EQ(step.schedule, StepSchedule::asynchronous);
  EXPECT_EQ(step.staleness, 3);
  EXPECT_EQ(step.during_refit, DuringRefit::generate);
  EXPECT_EQ(step.rollout, (RolloutSpec{64, 16, 1000, 4000, 500, 40.5}));
  EXPECT_EQ(step.training, (TrainingSpec{700, 100}));
  EXPECT_EQ(seconds(step.tail_time), 1);
  EXPECT_EQ(seconds(step.reward_time), 2);
  EXPECT_EQ(seconds(step.load_time), 3);
  EXPECT_EQ(seconds(step.pause_time), 4);
  EXPECT_EQ(step.kv_cache, CacheRule::recompute);
  EXPECT_EQ(step.prefill, (PrefillSpec{5000, 9000}));
  EXPECT_EQ(step.decode, (DecodeSpec{0.1, 0.2, 0.3, 0.4, 5, 144}));
  EXPECT_EQ(step.ctas, 16);
  EXPECT_EQ(step.steps, 50);
  EXPECT_TRUE(read(phases + "  schedule: asynchronous\n  staleness: unbounded\n").unbounded);
}

TEST(ScenarioStep, yields_to_overrides) {
  const auto step = parse_step(refit_lines + "step:\n" + phases, "s.yaml", {{"step.train_time", "1 s"}});
  EXPECT_EQ(seconds(*step->train_time), 1);
}

TEST(ScenarioStep, is_refused_with_line_key_and_what_is_allowed) {
  EXPECT_THAT(refusal("  rollout_time: 40\n  train_time: 20 s\n"),
              HasSubstr("s.yaml:6: step.rollout_time: found '40'; allowed: a time with its unit, such as"));
  EXPECT_THAT(refusal(phases + "  staleness: 2\n"),
              HasSubstr("s.yaml:8: step.staleness: found staleness of a synchronous schedule; allowed: it "
                        "with schedule: asynchronous"));
  EXPECT_THAT(refusal(phases + "  schedule: asynchronous\n  staleness: 0\n"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(refusal(phases + "  schedule: sometimes\n"), HasSubstr("allowed: synchronous, asynchronous"));
  EXPECT_THAT(refusal(phases + "  during_refit: pause\n"), HasSubstr("allowed: generate, drain, stop"));
  EXPECT_THAT(refusal(phases + "  kv_cache: lose\n"), HasSubstr("allowed: keep, recompute, flush"));
  EXPECT_THAT(refusal("  train_time: 20 s\n"), HasSubstr("found neither rollout_time nor rollout"));
  EXPECT_THAT(refusal("  rollout_time: 40 s\n"), HasSubstr("found neither train_time nor training"));
  EXPECT_THAT(refusal("  rollout_time: 40 s\n  training: {tokens_per_second_per_gpu: 1}\n"),
              HasSubstr("s.yaml:7: step.training: found training without rollout"));
  EXPECT_THAT(refusal(phases + "  training: {tokens_per_second_per_gpu: 1}\n"),
              HasSubstr("found training beside train_time; allowed: one of them"));
  EXPECT_THAT(refusal(phases + "  cache_time: 1 s\n  prefill: {}\n"), HasSubstr("prefill beside cache_time"));
  EXPECT_THAT(refusal(phases + "  load_time: 100001 s\n"), HasSubstr("at most 100000 s"));
  EXPECT_THAT(refusal(phases + "  decode: {nvlink: 1.5}\n"), HasSubstr("a share: 0, or 0.001 to 1"));
  EXPECT_THAT(refusal(phases + "  ctas: 0\n"), HasSubstr("step.ctas: found '0'; allowed: "));
  EXPECT_THAT(refusal(phases + "  steps: 3\n"), HasSubstr("a whole number from 4 to 10000"));
  EXPECT_THAT(refusal(phases + "  rolout_time: 1 s\n"), HasSubstr("rollout_time"));
  EXPECT_THAT(refusal("  rollout: {prompts: 1, tokens: 9, longest: 10, tokens_per_second_per_gpu: 1}\n"
                      "  train_time: 1 s\n"),
              HasSubstr("step.rollout.longest: found longest alone"));
}

TEST(ScenarioStep, stands_beside_a_model_only) {
  try {
    parse_scenario("tensor: {shape: [8], dtype: u8}\nstep: {}\nfabric: {preset: dgx-h100, hosts: 1}\n",
                   "t.yaml");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("it with model, train and generate only"));
  }
}

}  // namespace
}  // namespace isthmus::scenario_step_test
