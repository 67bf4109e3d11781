#pragma once
// Runs a sweep: predicts candidates in the order of their lower bounds and leaves out those that can be
// nothing any more. Candidates of one model and one calibration are compared with each other: a *field*.
// Pruning is exact. A candidate of bound b is left out when, among those of its field before it in that
// order, (1) `top` are predicted below b, and (2) one of them needs no more memory and no more GPUs. So the
// best `top` and the Pareto front (refit time, memory of a generation GPU, GPUs of both sides) are those of
// the run without pruning.
// Invariant: the result is that of one worker that goes through the order, whoever computes what, in whatever
// order; what others computed too early is dropped. So it does not depend on threads, nor on what was
// computed before an interruption.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/prediction_interval.hpp"
#include "report/sweep_candidates.hpp"

namespace isthmus::report {

/// What computing a candidate gives. Of refused and unproven plans nothing else is set.
struct SweepOutcome {
  std::string refused;  // the policy's reason, or what the checker found
  Duration time;
  Bytes staging;  // the most on one GPU at one time
  friend bool operator==(const SweepOutcome&, const SweepOutcome&) = default;
};

/// Of the best and of the Pareto front: times under the ends of the calibration's intervals, and the bound of
/// the whole refit.
struct SweepDetail {
  std::vector<Duration> ends;
  Duration bound;
  std::string binding;
  friend bool operator==(const SweepDetail&, const SweepDetail&) = default;
};

/// One job. Anyone who has the same space can do it.
SweepOutcome sweep_outcome(const SweepSpace& space, const SweepCandidates& candidates,
                           std::uint32_t candidate);
SweepDetail sweep_detail(const SweepSpace& space, const SweepCandidates& candidates, std::uint32_t candidate);

/// What a job gives, as a line of text that anybody may compute: an outcome or a detail.
enum class SweepJob : std::uint8_t { outcome, detail };
std::string sweep_job(const SweepSpace& space, const SweepCandidates& candidates, SweepJob kind,
                      std::uint32_t candidate);

/// Hands out numbers of jobs and takes them back when done. All functions may be called from any thread.
class SweepDesk {
 public:
  virtual ~SweepDesk() = default;
  virtual std::optional<std::uint32_t> take() = 0;  // nullopt: nothing is left to begin
  virtual void work(std::uint32_t job) = 0;         // computes it and hands it in
};
/// One whose jobs are candidates, which other processes may compute as well.
class SharedDesk : public SweepDesk {
 public:
  virtual SweepJob kind() const = 0;
  virtual std::string compute(std::uint32_t candidate) const = 0;
  virtual void accept(std::uint32_t candidate, const std::string& line) = 0;
  void work(std::uint32_t job) override { accept(job, compute(job)); }
};
/// Whoever does the jobs: threads of this process or a job's other processes (report/sweep_crew.hpp).
class SweepCrew {
 public:
  virtual ~SweepCrew() = default;
  /// Works until the desk has nothing left and all jobs are handed in. Raises what a job raised.
  virtual void run(SweepDesk& desk) = 0;
  virtual void share(SharedDesk& desk) { run(desk); }
};

/// Keeps what is computed, for a later run.
class SweepJournal {
 public:
  virtual ~SweepJournal() = default;
  virtual void add(std::uint32_t candidate, const SweepOutcome& outcome) = 0;
  virtual void add(std::uint32_t candidate, const SweepDetail& detail) = 0;
  std::map<std::uint32_t, SweepOutcome> outcomes;  // of earlier runs
  std::map<std::uint32_t, SweepDetail> details;
};

struct SweepSettings {
  std::size_t top = 10;
  bool prune = true;
  SweepJournal* journal = nullptr;
  std::function<void(std::size_t decided, std::size_t computed)> progress;
};

/// One model under one calibration.
struct SweepField {
  std::uint32_t model = 0, calibration = 0;
  std::vector<std::uint32_t> ranking;  // predicted candidates, fastest first
  std::vector<std::uint32_t> best;     // the first `top` of them
  std::vector<std::uint32_t> pareto;   // fastest first
};

struct SweepResult {
  std::vector<std::optional<SweepOutcome>> outcomes;  // by candidate; none: pruned
  std::map<std::uint32_t, SweepDetail> details;       // of the best and of the Pareto front
  std::vector<SweepField> fields;

  std::size_t predicted() const;
  std::size_t refused() const;
  PredictedInterval interval(std::uint32_t candidate) const;  // of what has a detail
};

SweepResult run_sweep(const SweepSpace& space, const SweepCandidates& candidates,
                      const SweepSettings& settings, SweepCrew& crew);

}  // namespace isthmus::report
