#include "sim/pipeline.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::sim {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

Int128 work_of(Duration time) { return Int128{time.value} * PipelineSpec::whole; }

/// Picoseconds until so much work is done at that speed.
std::int64_t time_for(Int128 work, Int128 speed) {
  if (work <= 0) return 0;
  if (speed == 0) return never;
  const Int128 time = (work + speed - 1) / speed;
  return time < never ? static_cast<std::int64_t>(time) : never;
}

/// Batches that may be rolled out beyond the last step: without a bound on staleness generators run ahead.
constexpr std::size_t spare_batches = 100'000;

class PipelineRun {
 public:
  explicit PipelineRun(const PipelineSpec& spec) : spec_(spec) {
    result_.steps.resize(to_size(spec.steps));
    result_.staleness.resize(to_size(spec.steps));
  }

  Pipeline run() {
    while (true) {
      while (end_work() || end_training() || go_on_refitting() || begin_training() || begin_batch()) {
      }
      if (result_.totals.size() == result_.steps.size() && stage_ == Stage::free) break;
      pass(next());
    }
    return std::move(result_);
  }

 private:
  enum class Stage : std::uint8_t { free, draining, pausing, refitting, loading, caching };
  enum class Trainer : std::uint8_t { waiting, training, holding, refitting };
  struct Tail {
    std::size_t batch = 0;
    Int128 end = 0;  // in work
  };

  bool in_flight() const { return rolling_ || !tails_.empty(); }
  bool generates() const { return spec_.during == DuringRefit::generate; }

  std::int64_t speed() const {
    switch (stage_) {
      case Stage::free:
      case Stage::draining: return PipelineSpec::whole;
      case Stage::refitting: return generates() ? spec_.decoding : 0;
      case Stage::pausing:
      case Stage::loading:
      case Stage::caching: return 0;
    }
    return 0;
  }

  /// Of refit x loaded_refit.
  Int128 refit_speed() const {
    return generates() && in_flight() ? spec_.refit.value : spec_.loaded_refit.value;
  }

  bool end_work() {
    if (rolling_ && left_ <= 0) {
      rolling_ = false;
      tails_.push_back({next_batch_ - 1, worked_ + work_of(spec_.tail)});
      return true;
    }
    if (tails_.empty() || tails_.front().end > worked_) return false;
    const std::size_t batch = tails_.front().batch;
    tails_.pop_front();
    if (batch < result_.steps.size()) result_.steps[batch].ready = now_ + spec_.reward;
    completed_ = batch + 1;
    return true;
  }

  bool end_training() {
    if (trainer_ != Trainer::training || now_ < trainer_until_) return false;
    result_.steps[step_].trained = now_;
    trainer_ = Trainer::holding;
    return true;
  }

  bool go_on_refitting() {
    switch (stage_) {
      case Stage::free:
        if (trainer_ != Trainer::holding) return false;
        if (generates()) return begin_refit();
        if (spec_.during == DuringRefit::stop) return enter(Stage::pausing, spec_.pause);
        return enter(Stage::draining, {});
      case Stage::draining: return !in_flight() && enter(Stage::pausing, spec_.pause);
      case Stage::pausing: return now_ >= stage_until_ && begin_refit();
      case Stage::refitting: return refit_left_ <= 0 && end_refit();
      case Stage::loading: return now_ >= stage_until_ && install();
      case Stage::caching: return now_ >= stage_until_ && enter(Stage::free, {});
    }
    return false;
  }

  bool enter(Stage stage, Duration time) {
    stage_ = stage;
    stage_until_ = now_ + time;
    return true;
  }

  bool begin_refit() {
    trainer_ = Trainer::refitting;
    refit_left_ = Int128{spec_.refit.value} * spec_.loaded_refit.value;
    return enter(Stage::refitting, {});
  }

  bool end_refit() {
    result_.steps[step_].sent = now_;
    result_.totals.push_back(times_);
    trainer_ = Trainer::waiting;
    ++step_;
    return enter(Stage::loading, spec_.load);
  }

  bool install() {
    result_.steps[to_size(version_)].installed = now_;
    ++version_;
    const bool rebuilt =
        spec_.kv_cache == CacheRule::flush || (spec_.kv_cache == CacheRule::recompute && in_flight());
    return enter(Stage::caching, rebuilt ? spec_.cache : Duration{});
  }

  bool begin_training() {
    if (trainer_ != Trainer::waiting || step_ >= result_.steps.size() || completed_ <= step_) return false;
    if (now_ < result_.steps[step_].ready) return false;
    result_.steps[step_].trained_from = now_;
    trainer_ = Trainer::training;
    trainer_until_ = now_ + spec_.train;
    return true;
  }

  bool begin_batch() {
    const bool open = stage_ == Stage::free || (stage_ == Stage::refitting && generates());
    if (rolling_ || !open || next_batch_ >= result_.steps.size() + spare_batches) return false;
    const std::int64_t behind = static_cast<std::int64_t>(next_batch_) - version_;
    if (spec_.staleness && behind > *spec_.staleness) return false;
    rolling_ = true;
    left_ = work_of(spec_.rollout);
    if (next_batch_ < result_.steps.size()) {
      result_.steps[next_batch_].begun = now_;
      if (left_ == 0) result_.staleness[next_batch_][behind] += 1;
    }
    ++next_batch_;
    return true;
  }

  /// Picoseconds until something ends.
  std::int64_t next() const {
    std::int64_t time = never;
    if (rolling_) time = std::min(time, time_for(left_, speed()));
    if (!tails_.empty()) time = std::min(time, time_for(tails_.front().end - worked_, speed()));
    const auto wait_for = [&](Instant when) {
      if (when > now_) time = std::min(time, (when - now_).value);
    };
    if (trainer_ == Trainer::training) wait_for(trainer_until_);
    const bool complete = step_ < result_.steps.size() && completed_ > step_;
    if (trainer_ == Trainer::waiting && complete) wait_for(result_.steps[step_].ready);
    if (stage_ == Stage::pausing || stage_ == Stage::loading || stage_ == Stage::caching) {
      wait_for(stage_until_);
    }
    if (stage_ == Stage::refitting) time = std::min(time, time_for(refit_left_, refit_speed()));
    ISTHMUS_ASSERT(time > 0 && time < never, "step {} of {} waits for nothing", step_, result_.steps.size());
    return time;
  }

  void pass(std::int64_t picoseconds) {
    const Duration time{picoseconds};
    const Int128 work = Int128{picoseconds} * speed();
    count_train(time);
    count_generate(time, {static_cast<std::int64_t>(work / PipelineSpec::whole)});
    if (stage_ == Stage::refitting) refit_left_ -= refit_speed() * picoseconds;
    if (rolling_) {
      const std::size_t batch = next_batch_ - 1;
      const Int128 done = std::min(work, left_);
      if (batch < result_.steps.size() && done > 0) {
        result_.staleness[batch][static_cast<std::int64_t>(batch) - version_] += done;
      }
      left_ -= work;
    }
    worked_ += work;
    now_ = now_ + time;
  }

  void count_train(Duration time) {
    times_.all += time;
    switch (trainer_) {
      case Trainer::waiting: times_.train_idle += time; break;
      case Trainer::training: times_.train += time; break;
      case Trainer::holding: times_.hold += time; break;
      case Trainer::refitting: times_.train_refit += time; break;
    }
  }

  void count_generate(Duration time, Duration worked) {
    if (stage_ == Stage::pausing || stage_ == Stage::loading || stage_ == Stage::caching) {
      times_.stopped += time;
    } else if (stage_ == Stage::refitting && !(generates() && in_flight())) {
      times_.generate_refit += time;
    } else if (!in_flight()) {
      times_.generate_idle += time;
    } else {
      const bool drains = stage_ == Stage::draining;
      (rolling_ ? times_.generate : drains ? times_.drain : times_.tail) += worked;
      times_.slowed += time - worked;
    }
  }

  const PipelineSpec& spec_;
  Pipeline result_;
  PipelineTimes times_;
  Instant now_;
  // Generators:
  Stage stage_ = Stage::free;
  Instant stage_until_;
  bool rolling_ = false;
  Int128 left_ = 0, refit_left_ = 0;
  Int128 worked_ = 0;       // since the begin
  std::deque<Tail> tails_;  // in the order of batches
  std::size_t next_batch_ = 0, completed_ = 0;
  std::int64_t version_ = 0;
  // Training:
  Trainer trainer_ = Trainer::waiting;
  Instant trainer_until_;
  std::size_t step_ = 0;
};

}  // namespace

PipelineTimes Pipeline::between(std::size_t first) const {
  const PipelineTimes &begin = totals[first], &end = totals.back();
  return {end.all - begin.all,
          end.train - begin.train,
          end.hold - begin.hold,
          end.train_refit - begin.train_refit,
          end.train_idle - begin.train_idle,
          end.generate - begin.generate,
          end.tail - begin.tail,
          end.drain - begin.drain,
          end.slowed - begin.slowed,
          end.generate_refit - begin.generate_refit,
          end.stopped - begin.stopped,
          end.generate_idle - begin.generate_idle};
}

Pipeline run_pipeline(const PipelineSpec& spec) { return PipelineRun(spec).run(); }

}  // namespace isthmus::sim
