#include "model/scenario_step.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/quantity.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::int64_t max_prompts = 10'000'000, max_samples = 10'000, max_tokens = 10'000'000;
constexpr std::int64_t max_staleness = 1'000, max_ctas = 1'024, max_decode_flows = 1'000;
constexpr std::int64_t least_steps = 4, max_steps = 10'000;
constexpr double least_share = 0.001, least_rate = 0.001, max_rate = 1e12;

constexpr std::array<std::string_view, 2> schedule_names{"synchronous", "asynchronous"};
constexpr std::array<std::string_view, 3> during_names{"generate", "drain", "stop"};
constexpr std::array<std::string_view, 3> cache_names{"keep", "recompute", "flush"};

template <class Kind, class Names>
void read_kind(const YamlValue& mapping, std::string_view key, const Names& names, Kind& into) {
  const auto value = mapping.find(key);
  if (!value) return;
  const std::string form = fmt::format("{}", fmt::join(names, ", "));
  const auto found = std::find(names.begin(), names.end(), value->text(form));
  if (found == names.end()) value->refuse(form);
  into = static_cast<Kind>(found - names.begin());
}

std::optional<Duration> read_phase(const YamlValue& mapping, std::string_view key) {
  const auto value = mapping.find(key);
  if (!value) return std::nullopt;
  const std::optional<Duration> time = parse_duration(value->text(time_form));
  if (!time) value->refuse(time_form);
  if (seconds(*time) > max_phase_seconds) value->refuse(fmt::format("at most {:.0f} s", max_phase_seconds));
  return time;
}

void read_phase(const YamlValue& mapping, std::string_view key, Duration& into) {
  if (const auto time = read_phase(mapping, key)) into = *time;
}

void read_number(const YamlValue& mapping, std::string_view key, std::int64_t least, std::int64_t most,
                 std::int64_t& into) {
  if (const auto value = mapping.find(key)) into = value->integer(least, most);
}

double token_rate(const YamlValue& value) {
  constexpr std::string_view form = "tokens per second, 0.001 to 10^12";
  const double rate = value.number(form);
  if (rate < least_rate || rate > max_rate) value.refuse(form);
  return rate;
}

RolloutSpec read_rollout(const YamlValue& value) {
  value.allow_only({"prompts", "samples", "tokens", "longest", "tokens_per_second_per_gpu",
                    "tokens_per_second_per_sample"});
  RolloutSpec spec;
  spec.prompts = value.at("prompts").integer(1, max_prompts);
  read_number(value, "samples", 1, max_samples, spec.samples);
  spec.tokens = value.at("tokens").integer(1, max_tokens);
  read_number(value, "longest", spec.tokens, max_tokens, spec.longest);
  spec.gpu_rate = token_rate(value.at("tokens_per_second_per_gpu"));
  if (const auto rate = value.find("tokens_per_second_per_sample")) spec.sample_rate = token_rate(*rate);
  if (spec.longest > 0 && spec.sample_rate == 0) {
    value.at("longest").refuse("longest alone", "it beside tokens_per_second_per_sample");
  }
  return spec;
}

TrainingSpec read_training(const YamlValue& value) {
  value.allow_only({"tokens_per_second_per_gpu", "prompt_tokens"});
  TrainingSpec spec;
  spec.gpu_rate = token_rate(value.at("tokens_per_second_per_gpu"));
  read_number(value, "prompt_tokens", 0, max_tokens, spec.prompt_tokens);
  return spec;
}

PrefillSpec read_prefill(const YamlValue& value) {
  value.allow_only({"cached_tokens_per_gpu", "tokens_per_second_per_gpu"});
  return {value.at("cached_tokens_per_gpu").integer(1, max_prompts * max_samples),
          token_rate(value.at("tokens_per_second_per_gpu"))};
}

DecodeSpec read_decode(const YamlValue& value) {
  value.allow_only({"nvlink", "nic", "memory", "sm", "flows", "sms"});
  DecodeSpec spec;
  const auto read_share = [&](std::string_view key, double& into) {
    const auto share = value.find(key);
    if (!share) return;
    constexpr std::string_view form = "a share: 0, or 0.001 to 1";
    into = share->number(form);
    if (into > 1 || (into != 0 && into < least_share)) share->refuse(form);
  };
  read_share("nvlink", spec.nvlink);
  read_share("nic", spec.nic);
  read_share("memory", spec.memory);
  read_share("sm", spec.sm);
  read_count(value, "flows", spec.flows, max_decode_flows);
  read_count(value, "sms", spec.sms, max_ctas);
  return spec;
}

/// One of two keys that say the same in two ways.
void require_one(const YamlValue& value, std::string_view time, std::string_view throughput, bool required) {
  const auto second = value.find(throughput);
  if (value.find(time)) {
    if (second) second->refuse(fmt::format("{} beside {}", throughput, time), "one of them");
  } else if (required && !second) {
    value.refuse(fmt::format("neither {} nor {}", time, throughput), "one of them");
  }
}

void read_staleness(const YamlValue& value, StepSpec& step) {
  const auto staleness = value.find("staleness");
  if (!staleness) return;
  if (step.schedule == StepSchedule::synchronous) {
    staleness->refuse("staleness of a synchronous schedule", "it with schedule: asynchronous");
  }
  const YamlNode& node = staleness->node();
  if (node.kind == YamlNode::Kind::scalar && node.text == "unbounded") {
    step.unbounded = true;
    return;
  }
  if (node.kind != YamlNode::Kind::scalar) staleness->refuse("1 to 1,000, or unbounded");
  step.staleness = static_cast<int>(staleness->integer(1, max_staleness));
}

void read_phases(const YamlValue& value, StepSpec& step) {
  require_one(value, "rollout_time", "rollout", true);
  require_one(value, "train_time", "training", true);
  require_one(value, "cache_time", "prefill", false);
  step.rollout_time = read_phase(value, "rollout_time");
  step.train_time = read_phase(value, "train_time");
  if (const auto rollout = value.find("rollout")) step.rollout = read_rollout(*rollout);
  if (const auto training = value.find("training")) {
    if (!step.rollout)
      training->refuse("training without rollout", "it beside rollout, which says how many tokens");
    step.training = read_training(*training);
  }
  read_phase(value, "tail_time", step.tail_time);
  read_phase(value, "reward_time", step.reward_time);
  read_phase(value, "load_time", step.load_time);
  read_phase(value, "pause_time", step.pause_time);
  read_phase(value, "cache_time", step.cache_time);
  if (const auto prefill = value.find("prefill")) step.prefill = read_prefill(*prefill);
}

}  // namespace

StepSpec read_step(const YamlValue& value) {
  value.allow_only({"schedule", "staleness", "during_refit", "rollout_time", "rollout", "train_time",
                    "training", "tail_time", "reward_time", "load_time", "pause_time", "kv_cache",
                    "cache_time", "prefill", "decode", "ctas", "steps"});
  StepSpec step;
  read_kind(value, "schedule", schedule_names, step.schedule);
  read_staleness(value, step);
  read_kind(value, "during_refit", during_names, step.during_refit);
  read_kind(value, "kv_cache", cache_names, step.kv_cache);
  read_phases(value, step);
  if (const auto decode = value.find("decode")) step.decode = read_decode(*decode);
  read_count(value, "ctas", step.ctas, max_ctas);
  if (const auto steps = value.find("steps")) {
    step.steps = static_cast<int>(steps->integer(least_steps, max_steps));
  }
  return step;
}

std::optional<StepSpec> find_step(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  return parse_step(read_text_file(file), file, overrides);
}

std::optional<StepSpec> parse_step(const std::string& text, const std::filesystem::path& file,
                                   const std::vector<Override>& overrides) {
  YamlDocument document(text, file.string());
  for (const auto& [key, value] : overrides) document.set(key, value);
  const auto step = document.root().find("step");
  return step ? std::optional(read_step(*step)) : std::nullopt;
}

}  // namespace isthmus
