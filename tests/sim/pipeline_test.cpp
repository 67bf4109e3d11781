#include "sim/pipeline.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::sim {
namespace {

constexpr std::int64_t quarters = 4;

/// The rules once more, one picosecond after the other, with everything that is left counted down.
class TickedPipeline {
 public:
  TickedPipeline(const PipelineSpec& spec, std::int64_t speed) : spec_(spec), speed_(speed) {
    steps.resize(to_size(spec.steps));
  }

  void run() {
    for (; installed < spec_.steps || after_refit_ >= 0; ++now_) {
      settle();
      if (installed == spec_.steps && after_refit_ < 0) break;
      tick();
    }
  }

  std::vector<PipelineStep> steps;
  PipelineTimes at_last;  // until the last refit was over
  std::int64_t oldest = 0;
  int installed = 0;

 private:
  void settle() {
    for (bool changed = true; changed;) {
      changed = false;
      if (rollout_left_ == 0) {
        rollout_left_ = -1;
        tails_.push_back(spec_.tail.value * quarters);
        changed = true;
        continue;
      }
      if (!tails_.empty() && tails_.front() <= 0) {
        tails_.erase(tails_.begin());
        if (complete_ < spec_.steps) steps[to_size(complete_)].ready = {now_ + spec_.reward.value};
        ++complete_;
        changed = true;
        continue;
      }
      if (train_left_ == 0) {
        train_left_ = -1;
        steps[to_size(sent_)].trained = {now_};
        wants_refit_ = true;
        changed = true;
        continue;
      }
      changed = settle_refit() || settle_begins();
    }
  }

  bool settle_refit() {
    if (wants_refit_ && !closing_ && after_refit_ < 0) return closing_ = true;
    const bool drained = spec_.during != DuringRefit::drain || !busy();
    if (closing_ && pause_left_ < 0 && refit_left_ < 0 && drained) {
      pause_left_ = spec_.during == DuringRefit::generate ? 0 : spec_.pause.value;
      return true;
    }
    if (pause_left_ == 0 && refit_left_ < 0) {
      pause_left_ = -1;
      wants_refit_ = false;
      refit_left_ = spec_.refit.value * spec_.loaded_refit.value;
      return true;
    }
    if (closing_ && refit_left_ == 0) {
      refit_left_ = -1;
      closing_ = false;
      steps[to_size(sent_)].sent = {now_};
      at_last = times_;
      ++sent_;
      after_refit_ = spec_.load.value;
      loading_ = true;
      return true;
    }
    if (after_refit_ == 0 && loading_) {
      loading_ = false;
      steps[to_size(installed)].installed = {now_};
      ++installed;
      const bool rebuild =
          spec_.kv_cache == CacheRule::flush || (spec_.kv_cache == CacheRule::recompute && busy());
      after_refit_ = rebuild ? spec_.cache.value : 0;
      return true;
    }
    if (after_refit_ == 0) {
      after_refit_ = -1;
      return true;
    }
    return false;
  }

  bool settle_begins() {
    const bool free_trainer = train_left_ < 0 && !wants_refit_ && !closing_ && sent_ < spec_.steps;
    if (free_trainer && complete_ > sent_ && steps[to_size(sent_)].ready.value <= now_) {
      steps[to_size(sent_)].trained_from = {now_};
      train_left_ = spec_.train.value;
      return true;
    }
    const bool generating = spec_.during == DuringRefit::generate;
    const bool open = after_refit_ < 0 && (generating || !closing_);
    const bool fresh = !spec_.staleness || begun_ - installed <= *spec_.staleness;
    if (rollout_left_ >= 0 || !open || !fresh) return false;
    if (begun_ < spec_.steps) {
      steps[to_size(begun_)].begun = {now_};
      oldest = std::max(oldest, begun_ - installed);
    }
    ++begun_;
    rollout_left_ = spec_.rollout.value * quarters;
    return true;
  }

  bool busy() const { return rollout_left_ >= 0 || !tails_.empty(); }

  void tick() {
    std::int64_t speed = quarters;
    const bool generating = spec_.during == DuringRefit::generate;
    if (after_refit_ >= 0 || pause_left_ >= 0) {
      speed = 0;
      times_.stopped += Duration{1};
    } else if (refit_left_ >= 0) {
      speed = generating ? speed_ : 0;
      if (!(generating && busy())) times_.generate_refit += Duration{1};
    } else if (!busy()) {
      times_.generate_idle += Duration{1};
    }
    times_.all += Duration{1};
    if (train_left_ > 0) {
      times_.train += Duration{1};
    } else if (wants_refit_) {
      times_.hold += Duration{1};
    } else if (refit_left_ >= 0) {
      times_.train_refit += Duration{1};
    } else {
      times_.train_idle += Duration{1};
    }
    const std::int64_t refit = generating && busy() ? spec_.refit.value : spec_.loaded_refit.value;
    const auto down = [](std::int64_t& left, std::int64_t by) {
      if (left > 0) left = std::max<std::int64_t>(0, left - by);
    };
    down(refit_left_, refit);
    down(rollout_left_, speed);
    for (std::int64_t& left : tails_) down(left, speed);
    down(train_left_, 1);
    down(pause_left_, 1);
    down(after_refit_, 1);
  }

  const PipelineSpec& spec_;
  std::int64_t speed_;
  PipelineTimes times_;
  std::int64_t now_ = 0, begun_ = 0, complete_ = 0, sent_ = 0;
  // -1: not under way.
  std::int64_t rollout_left_ = -1, train_left_ = -1, pause_left_ = -1, refit_left_ = -1, after_refit_ = -1;
  std::vector<std::int64_t> tails_;
  bool wants_refit_ = false, closing_ = false, loading_ = false;
};

struct PipelineCase {
  PipelineSpec spec;
  std::int64_t speed = quarters;
};

PipelineCase any_pipeline() {
  const auto time = [](std::int64_t least, std::int64_t most) {
    return Duration{*rc::gen::inRange<std::int64_t>(least, most + 1)};
  };
  PipelineCase result;
  PipelineSpec& spec = result.spec;
  spec.rollout = time(1, 30);
  spec.train = time(1, 30);
  spec.refit = time(1, 12);
  spec.loaded_refit = spec.refit + time(0, 12);
  spec.tail = time(0, 12);
  spec.reward = time(0, 6);
  spec.load = time(0, 5);
  spec.pause = time(0, 4);
  spec.cache = time(0, 6);
  result.speed = *rc::gen::inRange<std::int64_t>(0, quarters + 1);
  spec.decoding = PipelineSpec::whole / quarters * result.speed;
  spec.staleness = *rc::gen::inRange(0, 5);
  if (*spec.staleness == 4) spec.staleness.reset();
  spec.during = static_cast<DuringRefit>(*rc::gen::inRange(0, 3));
  spec.kv_cache = static_cast<CacheRule>(*rc::gen::inRange(0, 3));
  spec.steps = *rc::gen::inRange(4, 12);
  return result;
}

std::vector<std::int64_t> instants(const PipelineStep& step) {
  return {step.begun.value,   step.ready.value, step.trained_from.value,
          step.trained.value, step.sent.value,  step.installed.value};
}

RC_GTEST_PROP(PipelineShards, run_as_the_rules_applied_picosecond_by_picosecond, ()) {
  const PipelineCase any = any_pipeline();
  const Pipeline pipeline = run_pipeline(any.spec);
  TickedPipeline ticked(any.spec, any.speed);
  ticked.run();
  for (std::size_t s = 0; s < pipeline.steps.size(); ++s) {
    RC_ASSERT(instants(pipeline.steps[s]) == instants(ticked.steps[s]));
  }
  PipelineTimes times = pipeline.totals.back();
  const Duration at_work = times.generate + times.tail + times.drain + times.slowed;
  times.generate = times.tail = times.drain = times.slowed = {};
  RC_ASSERT(times == ticked.at_last);
  RC_ASSERT(at_work + times.generate_refit + times.stopped + times.generate_idle == times.all);
}

RC_GTEST_PROP(PipelineShards, account_for_all_of_both_sides_time, ()) {
  const PipelineCase any = any_pipeline();
  const PipelineTimes times = run_pipeline(any.spec).between(0);
  RC_ASSERT(times.train + times.hold + times.train_refit + times.train_idle == times.all);
  RC_ASSERT(times.generate + times.tail + times.drain + times.slowed + times.generate_refit + times.stopped +
                times.generate_idle ==
            times.all);
}

RC_GTEST_PROP(PipelineShards, never_exceed_the_bound_on_staleness, ()) {
  PipelineCase any = any_pipeline();
  if (!any.spec.staleness) any.spec.staleness = 3;
  for (const auto& of_batch : run_pipeline(any.spec).staleness) {
    Int128 work = 0;
    for (const auto& [behind, share] : of_batch) {
      RC_ASSERT(behind >= 0 && behind <= *any.spec.staleness);
      work += share;
    }
    RC_ASSERT(work == Int128{any.spec.rollout.value} * PipelineSpec::whole);
  }
}

/// Steady picoseconds per step.
double pace(const PipelineSpec& spec) {
  const Pipeline pipeline = run_pipeline(spec);
  const std::size_t first = pipeline.steps.size() / 2;
  const Duration time = pipeline.steps.back().sent - pipeline.steps[first].sent;
  return static_cast<double>(time.value) / static_cast<double>(pipeline.steps.size() - 1 - first);
}

RC_GTEST_PROP(PipelineShards, synchronous_takes_the_sum_of_its_phases, ()) {
  PipelineSpec spec = any_pipeline().spec;
  spec.staleness = 0;
  const bool pauses = spec.during != DuringRefit::generate;
  const bool flushes = spec.kv_cache == CacheRule::flush;
  const Duration sum = spec.rollout + spec.tail + spec.reward + spec.train + spec.refit + spec.load +
                       (pauses ? spec.pause : Duration{}) + (flushes ? spec.cache : Duration{});
  RC_ASSERT(pace(spec) == static_cast<double>(sum.value));
}

/// The trainer's pace or the generators', as neither waits for the other; at the ends of the time looked at a
/// refit may fall into one batch more or less.
RC_GTEST_PROP(PipelineShards, without_a_bound_on_staleness_take_the_slower_sides_pace, ()) {
  PipelineSpec spec = any_pipeline().spec;
  spec.staleness.reset();
  spec.steps = 60;
  spec.tail = spec.load = spec.cache = {};
  spec.kv_cache = CacheRule::flush;
  if (spec.during == DuringRefit::drain) spec.during = DuringRefit::stop;
  const bool generates = spec.during == DuringRefit::generate;
  if (generates) {
    spec.decoding = PipelineSpec::whole;
    spec.pause = {};
  } else {
    spec.loaded_refit = spec.refit;
  }
  const Duration refit = generates ? spec.loaded_refit : spec.refit + spec.pause;
  const Duration trainer = spec.train + refit;
  const Duration generators = generates ? spec.rollout : spec.rollout + refit;
  const double slower = static_cast<double>(std::max(trainer, generators).value);
  const double off = (pace(spec) - slower) * 29;
  RC_ASSERT(std::abs(off) <= static_cast<double>(refit.value) + 1e-6);
}

RC_GTEST_PROP(PipelineShards, with_nothing_to_move_no_way_to_refit_differs, ()) {
  PipelineSpec spec = any_pipeline().spec;
  spec.refit = spec.loaded_refit = spec.load = spec.pause = spec.cache = {};
  spec.tail = {};
  if (spec.during == DuringRefit::drain) spec.during = DuringRefit::stop;
  const double stopped = pace(spec);
  spec.during = DuringRefit::generate;
  RC_ASSERT(pace(spec) == stopped);
}

RC_GTEST_PROP(PipelineShards, whose_generators_stop_are_no_faster_with_a_slower_refit, ()) {
  PipelineSpec spec = any_pipeline().spec;
  spec.during = DuringRefit::stop;
  const Pipeline before = run_pipeline(spec);
  spec.refit += Duration{*rc::gen::inRange<std::int64_t>(1, 20)};
  spec.loaded_refit = spec.refit;
  const Pipeline after = run_pipeline(spec);
  RC_ASSERT(after.steps.back().sent >= before.steps.back().sent);
}

TEST(Pipeline, generators_that_never_wait_for_the_trainer_are_off_by_the_bound) {
  PipelineSpec spec;
  spec.rollout = {10};
  spec.train = {30};
  spec.refit = spec.loaded_refit = {2};
  spec.staleness = 2;
  spec.during = DuringRefit::generate;
  spec.steps = 20;
  const Pipeline pipeline = run_pipeline(spec);
  ASSERT_EQ(pipeline.staleness.back().size(), 1U);
  EXPECT_EQ(pipeline.staleness.back().begin()->first, 2);
  EXPECT_EQ(pace(spec), 32);
  const PipelineTimes times = pipeline.between(10);
  EXPECT_EQ(times.generate.value * 32, times.all.value * 10);
  EXPECT_EQ(times.train_idle.value, 0);
}

TEST(Pipeline, decoding_slows_a_refit_only_while_a_batch_is_in_flight) {
  PipelineSpec spec;
  spec.rollout = {100};
  spec.train = {10};
  spec.refit = {10};
  spec.loaded_refit = {20};
  spec.decoding = PipelineSpec::whole / 2;
  spec.during = DuringRefit::generate;
  spec.staleness = 1;
  spec.steps = 4;
  // The batch that runs beside the first refit is at work all the time: 20; a batch costs 10 more meanwhile.
  const PipelineStep step = run_pipeline(spec).steps[1];
  EXPECT_EQ((step.begun).value, 100);
  EXPECT_EQ((step.ready).value, 210);
  spec.staleness = 0;
  const PipelineStep alone = run_pipeline(spec).steps[0];
  EXPECT_EQ((alone.sent - alone.trained).value, 10);
}

TEST(Pipeline, draining_costs_the_tails_that_refits_wait_for) {
  PipelineSpec spec;
  spec.rollout = {100};
  spec.tail = {40};
  spec.train = {10};
  spec.refit = spec.loaded_refit = {5};
  spec.staleness = 2;
  spec.steps = 20;
  // Batch 1 begins at 100 and is complete at 240; training 0 is over at 150: the last 40 are tails alone.
  const Pipeline pipeline = run_pipeline(spec);
  EXPECT_EQ(pipeline.steps[0].trained.value, 150);
  EXPECT_EQ(pipeline.steps[0].sent.value, 245);
  EXPECT_EQ(pipeline.totals[0].drain.value, 40);
  EXPECT_EQ(pipeline.totals[0].tail.value, 0);
  spec.staleness = 0;  // nothing is in flight then
  EXPECT_EQ(run_pipeline(spec).between(10).drain.value, 0);
}

}  // namespace
}  // namespace isthmus::sim
