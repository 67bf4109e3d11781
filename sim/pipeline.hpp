#pragma once
// The RL step over and over: batches are rolled out, trained on, and the new weights move to the generators.
// An event simulation in whole picoseconds. Rules:
//   batches    0, 1, ... one after the other; batch b may begin while b - version <= staleness, where version
//              counts refits installed. It holds the generators for `rollout` of their work and is complete
//              after `tail` more, beside the next batch; `reward` later it can be trained on.
//   training   of batch b begins when it can, and training b - 1 has sent its weights. It takes `train`.
//   refit      after each training. drain: no batch begins any more, all are completed, `pause`, then the
//              refit. stop: `pause`, then the refit. generate: at once. It takes `refit`, or `loaded_refit`
//              beside decoding, in shares of what is done where that changes. Then training goes on;
//              generators have `load`, then the new version, then `cache` (recompute: where a batch is in
//              flight), then go on. A refit waits for the one before it to be installed.
//   pace       generators work at speed 1, or `decoding` (in units of 1 / whole) during a refit with
//              generate; not at all while they pause, load, rebuild caches, and in other refits.
// At one instant: work ends, training ends, refits go on, training begins, batches begin.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/step.hpp"
#include "model/units.hpp"

namespace isthmus::sim {

struct PipelineSpec {
  static constexpr std::int64_t whole = 1'000'000'000;

  Duration rollout, tail, reward, train, load, pause, cache;
  Duration refit, loaded_refit;
  std::int64_t decoding = whole;
  std::optional<int> staleness = 0;  // none: unbounded
  DuringRefit during = DuringRefit::drain;
  CacheRule kv_cache = CacheRule::keep;
  int steps = 4;
};

/// Step b of training.
struct PipelineStep {
  Instant begun;  // rollout of its batch
  Instant ready;  // for training
  Instant trained_from, trained;
  Instant sent;       // the refit is over, training goes on
  Instant installed;  // generators have the weights
};

/// Where time went; each side's parts add up to `all`.
struct PipelineTimes {
  Duration all;
  Duration train, hold, train_refit, train_idle;  // hold: trained, but generators cannot take weights yet
  // rollout, and tails without one; tails that a refit waits for; what decoding lost beside refits; refits
  // that it stood still for, or that met no batch; pause, load and cache; nothing to do.
  Duration generate, tail, drain, slowed, generate_refit, stopped, generate_idle;
  friend bool operator==(const PipelineTimes&, const PipelineTimes&) = default;
};

struct Pipeline {
  std::vector<PipelineStep> steps;
  std::vector<PipelineTimes> totals;  // from the begin until each step's `sent`
  /// By refits that the weights were behind when they made a token of the batch, tokens as work.
  std::vector<std::map<std::int64_t, Int128>> staleness;  // by step

  /// Times of the steps from `first` on, from one `sent` to the last.
  PipelineTimes between(std::size_t first) const;
};

/// Requires steps >= 1, no negative time, decoding from 0 to whole, and sums below 2^63 picoseconds.
Pipeline run_pipeline(const PipelineSpec& spec);

}  // namespace isthmus::sim
