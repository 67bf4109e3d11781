#include "model/step.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

Duration phase_time(const Scenario& scenario, std::string_view key, double seconds_of_it) {
  if (!(seconds_of_it <= max_phase_seconds)) {
    throw InputError(scenario.at(key), fmt::format("{:.4g} s by this throughput", seconds_of_it),
                     fmt::format("at most {:.0f} s", max_phase_seconds));
  }
  return {std::llround(seconds_of_it * picoseconds_per_second)};
}

void add_rollout(const Scenario& scenario, const RolloutSpec& rollout, StepTimes& times) {
  times.tokens = rollout.prompts * rollout.samples * rollout.tokens;
  times.tokens_per_second = rollout.gpu_rate * scenario.generate->gpus;
  const double seconds_of_it = static_cast<double>(times.tokens) / times.tokens_per_second;
  times.rollout = phase_time(scenario, "step.rollout", seconds_of_it);
  if (rollout.sample_rate == 0) return;
  const auto longest = static_cast<double>(std::max(rollout.longest, rollout.tokens));
  const Duration last = phase_time(scenario, "step.rollout.longest", longest / rollout.sample_rate);
  times.tail = std::max(times.tail, last - times.rollout);
}

}  // namespace

std::string_view to_string(DuringRefit during) {
  switch (during) {
    case DuringRefit::generate: return "generate";
    case DuringRefit::drain: return "drain";
    case DuringRefit::stop: return "stop";
  }
  return "";
}

StepTimes step_times(const StepSpec& step, const Scenario& scenario) {
  StepTimes times;
  times.tail = step.tail_time;
  times.reward = step.reward_time;
  times.load = step.load_time;
  times.pause = step.pause_time;
  times.cache = step.cache_time;
  if (step.rollout_time) times.rollout = *step.rollout_time;
  if (step.rollout) add_rollout(scenario, *step.rollout, times);
  if (step.train_time) times.train = *step.train_time;
  if (step.training) {
    const std::int64_t samples = step.rollout->prompts * step.rollout->samples;
    const std::int64_t tokens = samples * (step.rollout->tokens + step.training->prompt_tokens);
    const double rate = step.training->gpu_rate * scenario.train->gpus;
    times.train = phase_time(scenario, "step.training", static_cast<double>(tokens) / rate);
  }
  if (step.prefill) {
    const double seconds_of_it = static_cast<double>(step.prefill->cached) / step.prefill->gpu_rate;
    times.cache = phase_time(scenario, "step.prefill", seconds_of_it);
  }
  return times;
}

}  // namespace isthmus
