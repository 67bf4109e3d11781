#pragma once
// One step of RL post-training as a scenario's `step` states it (docs/step.md): rollout on the generation
// GPUs, training on the training GPUs, the refit between them, and what surrounds it. Times are the user's,
// or follow from a throughput:
//   rollout  samples x tokens / (generation GPUs x tokens per second and GPU)
//   tail     longest / tokens per second of one sample - rollout, where that is above 0
//   train    samples x (tokens + prompt tokens) / (training GPUs x tokens per second and GPU)
//   cache    cached tokens per generation GPU / prefilled tokens per second and GPU
// where samples = prompts x samples per prompt. No constant of the machine stands here: every value is the
// scenario's, and 0 (or "as usual") where it says nothing.

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/scenario.hpp"
#include "model/units.hpp"

namespace isthmus {

enum class StepSchedule : std::uint8_t { synchronous, asynchronous };
/// What decoding does while weights are replaced: goes on; finishes what was begun, then pauses; or pauses in
/// the middle of it.
enum class DuringRefit : std::uint8_t { generate, drain, stop };
std::string_view to_string(DuringRefit during);
/// What becomes of KV caches of the old weights: they stay; those of samples in flight are computed anew;
/// all are dropped.
enum class CacheRule : std::uint8_t { keep, recompute, flush };

struct RolloutSpec {
  std::int64_t prompts = 0, samples = 1;
  std::int64_t tokens = 0;   // generated per sample, on average
  std::int64_t longest = 0;  // of the longest sample; 0: as the average
  double gpu_rate = 0;       // tokens per second and generation GPU
  double sample_rate = 0;    // tokens per second of one sample; 0: no sample is ever late
  friend bool operator==(const RolloutSpec&, const RolloutSpec&) = default;
};

struct TrainingSpec {
  double gpu_rate = 0;             // tokens per second and training GPU
  std::int64_t prompt_tokens = 0;  // per sample, trained beside those generated
  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

struct PrefillSpec {
  std::int64_t cached = 0;  // tokens of samples in flight, per generation GPU
  double gpu_rate = 0;      // prefilled tokens per second and GPU
  friend bool operator==(const PrefillSpec&, const PrefillSpec&) = default;
};

/// What decoding at full speed asks of each generation GPU: shares of what its ports, its memory and its SMs
/// give.
struct DecodeSpec {
  double nvlink = 0, nic = 0, memory = 0, sm = 0;
  int flows = 1;  // on each port, that share fairly with the refit's
  int sms = 132;  // SMs of a GPU (H100 SXM5: NVIDIA's data sheet)
  friend bool operator==(const DecodeSpec&, const DecodeSpec&) = default;
};

struct StepSpec {
  StepSchedule schedule = StepSchedule::synchronous;
  bool unbounded = false;  // no bound on staleness
  int staleness = 1;       // refits that a batch may be behind when it begins, with asynchronous
  DuringRefit during_refit = DuringRefit::drain;
  std::optional<Duration> rollout_time{}, train_time{};  // or:
  std::optional<RolloutSpec> rollout{};
  std::optional<TrainingSpec> training{};
  Duration tail_time{};    // of the last samples of a batch, beside the first ones of the next
  Duration reward_time{};  // from the end of a batch until it can be trained on
  Duration load_time{};    // generation, after the weights arrived and were installed
  Duration pause_time{};   // to stop and to resume engines
  CacheRule kv_cache = CacheRule::keep;
  Duration cache_time{};  // what recompute or flush costs; or:
  std::optional<PrefillSpec> prefill{};
  DecodeSpec decode{};
  int ctas = 0;  // CTAs that the transport has on each GPU; 0: it moves data without SMs
  int steps = 100;
  friend bool operator==(const StepSpec&, const StepSpec&) = default;
};

/// What the phases of one step take.
struct StepTimes {
  Duration rollout, tail, reward, train, load, pause, cache;
  std::int64_t tokens = 0;       // generated per step; 0: the scenario does not say
  double tokens_per_second = 0;  // of all generation GPUs; 0 likewise
};

/// Requires the scenario that `step` is from, with both sides. Raises InputError, at the key, for phases that
/// take longer than max_phase_seconds.
StepTimes step_times(const StepSpec& step, const Scenario& scenario);
inline constexpr double max_phase_seconds = 100'000;

}  // namespace isthmus
