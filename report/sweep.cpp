#include "report/sweep.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include <fmt/format.h>

#include "model/error.hpp"
#include "report/sweep_journal.hpp"

namespace isthmus::report {
namespace {

struct FieldKey {
  std::uint32_t model, calibration;
  friend auto operator<=>(const FieldKey&, const FieldKey&) = default;
};

struct Costs {
  Duration time;
  Bytes memory;
  int gpus = 0;
};

/// No worse in anything; `faster`: and below in time.
bool no_worse(const Costs& a, const Costs& b) {
  return a.time <= b.time && a.memory <= b.memory && a.gpus <= b.gpus;
}

Costs costs_of(const SweepCandidates& candidates, std::uint32_t candidate, Duration time) {
  const SweepLayout& layout = candidates.layouts[candidates.list[candidate].layout];
  return {time, layout.generate_memory,
          candidates.trains[layout.train].gpus + candidates.generates[layout.generate].gpus};
}

FieldKey field_of(const SweepCandidates& candidates, std::uint32_t candidate) {
  const SweepCandidate& each = candidates.list[candidate];
  return {candidates.layouts[each.layout].model, each.calibration};
}

/// What a field's predictions so far rule out.
class FieldState {
 public:
  explicit FieldState(std::size_t top) : top_(top) {}

  void add(const Costs& costs) {
    fastest_.insert(std::upper_bound(fastest_.begin(), fastest_.end(), costs.time), costs.time);
    if (fastest_.size() > top_) fastest_.pop_back();
    const bool beaten =
        std::any_of(front_.begin(), front_.end(), [&](const Costs& each) { return no_worse(each, costs); });
    if (beaten) return;
    std::erase_if(front_, [&](const Costs& each) { return no_worse(costs, each); });
    front_.push_back(costs);
  }

  /// Whether what takes `costs` or longer can be neither among the best nor on the front.
  bool rules_out(const Costs& costs) const {
    if (fastest_.size() < top_ || fastest_.back() >= costs.time) return false;
    return std::any_of(front_.begin(), front_.end(),
                       [&](const Costs& each) { return each.time < costs.time && no_worse(each, costs); });
  }

 private:
  std::size_t top_;
  std::vector<Duration> fastest_;
  std::vector<Costs> front_;
};

/// Hands out candidates by their bounds and settles them in that order.
class PredictionDesk : public SharedDesk {
 public:
  PredictionDesk(const SweepSpace& space, const SweepCandidates& candidates, const SweepSettings& settings)
      : space_(space), candidates_(candidates), settings_(settings), order_(candidates.list.size()) {
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return candidates.list[a].bound < candidates.list[b].bound;
    });
    computed_.resize(order_.size());
    settled_.resize(order_.size());
    for (const std::uint32_t each : order_) states_.try_emplace(field_of(candidates, each), settings.top);
    if (settings.journal != nullptr) {
      for (const auto& [candidate, outcome] : settings.journal->outcomes) computed_[candidate] = outcome;
    }
    settle();
  }

  std::optional<std::uint32_t> take() override {
    const std::lock_guard lock(mutex_);
    for (; next_ < order_.size(); ++next_) {
      if (computed_[order_[next_]] || ruled_out(order_[next_])) continue;
      return order_[next_++];
    }
    return std::nullopt;
  }

  SweepJob kind() const override { return SweepJob::outcome; }
  std::string compute(std::uint32_t candidate) const override {
    return sweep_job(space_, candidates_, kind(), candidate);
  }
  void accept(std::uint32_t candidate, const std::string& line) override {
    SweepOutcome outcome = outcome_of_line(line);
    const std::lock_guard lock(mutex_);
    if (settings_.journal != nullptr) settings_.journal->add(candidate, outcome);
    computed_[candidate] = std::move(outcome);
    ++count_;
    settle();
    if (settings_.progress) settings_.progress(done_, count_);
  }

  std::vector<std::optional<SweepOutcome>> finish() {
    ISTHMUS_ASSERT(done_ == order_.size(), "{} of {} candidates are settled", done_, order_.size());
    return std::move(settled_);
  }

 private:
  bool ruled_out(std::uint32_t candidate) const {
    if (!settings_.prune) return false;
    const Costs least = costs_of(candidates_, candidate, candidates_.list[candidate].bound);
    return states_.at(field_of(candidates_, candidate)).rules_out(least);
  }

  /// As far as one worker alone would know by now.
  void settle() {
    for (; done_ < order_.size(); ++done_) {
      const std::uint32_t candidate = order_[done_];
      if (ruled_out(candidate)) {
        computed_[candidate].reset();
        continue;
      }
      if (!computed_[candidate]) return;
      const SweepOutcome& outcome = *computed_[candidate];
      if (outcome.refused.empty()) {
        ISTHMUS_ASSERT(outcome.time >= candidates_.list[candidate].bound,
                       "candidate {}: {} ps are below its bound of {} ps", candidate, outcome.time.value,
                       candidates_.list[candidate].bound.value);
        states_.at(field_of(candidates_, candidate)).add(costs_of(candidates_, candidate, outcome.time));
      }
      settled_[candidate] = outcome;
    }
  }

  const SweepSpace& space_;
  const SweepCandidates& candidates_;
  const SweepSettings& settings_;
  std::vector<std::uint32_t> order_;
  std::mutex mutex_;
  std::size_t next_ = 0, done_ = 0, count_ = 0;  // positions in the order; computed in this run
  std::vector<std::optional<SweepOutcome>> computed_, settled_;
  std::map<FieldKey, FieldState> states_;
};

/// Hands out what is shown, to be looked at closely.
class DetailDesk : public SharedDesk {
 public:
  DetailDesk(const SweepSpace& space, const SweepCandidates& candidates, const SweepSettings& settings,
             SweepResult& result)
      : space_(space), candidates_(candidates), settings_(settings), result_(result) {
    for (const SweepField& field : result.fields) {
      std::vector<std::uint32_t> shown = field.best;
      shown.insert(shown.end(), field.pareto.begin(), field.pareto.end());
      std::sort(shown.begin(), shown.end());
      shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
      for (const std::uint32_t candidate : shown) {
        if (settings.journal != nullptr && settings.journal->details.contains(candidate)) {
          result.details[candidate] = settings.journal->details.at(candidate);
        } else {
          jobs_.push_back(candidate);
        }
      }
    }
  }

  std::optional<std::uint32_t> take() override {
    const std::lock_guard lock(mutex_);
    return next_ < jobs_.size() ? std::optional(jobs_[next_++]) : std::nullopt;
  }

  SweepJob kind() const override { return SweepJob::detail; }
  std::string compute(std::uint32_t candidate) const override {
    return sweep_job(space_, candidates_, kind(), candidate);
  }
  void accept(std::uint32_t candidate, const std::string& line) override {
    SweepDetail detail = detail_of_line(line);
    const std::lock_guard lock(mutex_);
    if (settings_.journal != nullptr) settings_.journal->add(candidate, detail);
    result_.details[candidate] = std::move(detail);
  }

 private:
  const SweepSpace& space_;
  const SweepCandidates& candidates_;
  const SweepSettings& settings_;
  SweepResult& result_;
  std::vector<std::uint32_t> jobs_;
  std::mutex mutex_;
  std::size_t next_ = 0;
};

/// Of candidates in the order of time, those that none before is no worse than.
std::vector<std::uint32_t> pareto_front(const SweepCandidates& candidates, const SweepResult& result,
                                        const std::vector<std::uint32_t>& ranking) {
  std::vector<std::uint32_t> front;
  std::vector<Costs> costs;
  for (const std::uint32_t candidate : ranking) {
    const Costs own = costs_of(candidates, candidate, result.outcomes[candidate]->time);
    const bool beaten =
        std::any_of(costs.begin(), costs.end(), [&](const Costs& each) { return no_worse(each, own); });
    if (beaten) continue;
    front.push_back(candidate);
    costs.push_back(own);
  }
  return front;
}

void rank(const SweepCandidates& candidates, std::size_t top, SweepResult& result) {
  std::map<FieldKey, std::vector<std::uint32_t>> members;
  for (std::uint32_t c = 0; c < candidates.list.size(); ++c) {
    std::vector<std::uint32_t>& of_field = members[field_of(candidates, c)];
    if (result.outcomes[c] && result.outcomes[c]->refused.empty()) of_field.push_back(c);
  }
  for (auto& [key, ranking] : members) {
    std::stable_sort(ranking.begin(), ranking.end(), [&](std::uint32_t a, std::uint32_t b) {
      return result.outcomes[a]->time < result.outcomes[b]->time;
    });
    SweepField field{key.model, key.calibration, ranking, {}, {}};
    field.best.assign(ranking.begin(),
                      ranking.begin() + static_cast<std::ptrdiff_t>(std::min(top, ranking.size())));
    field.pareto = pareto_front(candidates, result, ranking);
    result.fields.push_back(std::move(field));
  }
}

}  // namespace

std::size_t SweepResult::predicted() const {
  return to_size(std::count_if(outcomes.begin(), outcomes.end(),
                               [](const auto& each) { return each && each->refused.empty(); }));
}

std::size_t SweepResult::refused() const {
  return to_size(std::count_if(outcomes.begin(), outcomes.end(),
                               [](const auto& each) { return each && !each->refused.empty(); }));
}

PredictedInterval SweepResult::interval(std::uint32_t candidate) const {
  std::vector<double> ends;
  for (const Duration end : details.at(candidate).ends) ends.push_back(seconds(end));
  return interval_of(seconds(outcomes[candidate]->time), ends);
}

SweepResult run_sweep(const SweepSpace& space, const SweepCandidates& candidates,
                      const SweepSettings& settings, SweepCrew& crew) {
  SweepResult result;
  PredictionDesk predictions(space, candidates, settings);
  crew.share(predictions);
  result.outcomes = predictions.finish();
  rank(candidates, settings.top, result);
  DetailDesk details(space, candidates, settings, result);
  crew.share(details);
  return result;
}

}  // namespace isthmus::report
