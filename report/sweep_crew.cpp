#include "report/sweep_crew.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace isthmus::report {
namespace {

class NumberDesk : public SweepDesk {
 public:
  NumberDesk(std::size_t count, const std::function<void(std::size_t)>& work) : count_(count), work_(work) {}

  std::optional<std::uint32_t> take() override {
    const std::size_t number = next_++;
    return number < count_ ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt;
  }
  void work(std::uint32_t job) override { work_(job); }

 private:
  std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
};

/// Of a job's number in a team: a detail, not an outcome.
constexpr std::uint64_t detail_bit = std::uint64_t{1} << 32U;

std::optional<std::uint64_t> job_number(SweepJob kind, std::optional<std::uint32_t> candidate) {
  if (!candidate) return std::nullopt;
  return *candidate | (kind == SweepJob::detail ? detail_bit : 0);
}

/// Gives out nothing any more once somebody has left in distress.
class LeavableDesk : public SweepDesk {
 public:
  explicit LeavableDesk(SweepDesk& desk) : desk_(desk) {}
  std::optional<std::uint32_t> take() override { return left_ ? std::nullopt : desk_.take(); }
  void work(std::uint32_t job) override { desk_.work(job); }
  void leave() { left_ = true; }

 private:
  SweepDesk& desk_;
  std::atomic<bool> left_ = false;
};

}  // namespace

ThreadCrew::ThreadCrew(std::size_t threads) : threads_(std::max<std::size_t>(1, threads)) {}

void ThreadCrew::run(SweepDesk& desk) {
  std::mutex mutex;
  std::exception_ptr raised;
  std::atomic<bool> stop = false;
  const auto work = [&] {
    try {
      while (!stop) {
        const std::optional<std::uint32_t> job = desk.take();
        if (!job) return;
        desk.work(*job);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!raised) raised = std::current_exception();
      stop = true;
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads_; ++i) others.emplace_back(work);
  work();
  for (std::thread& each : others) each.join();
  if (raised) std::rethrow_exception(raised);
}

void run_jobs(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
  NumberDesk desk(count, work);
  ThreadCrew(threads).run(desk);
}

TeamCrew::TeamCrew(hw::JobTeam& team, std::size_t threads) : team_(team), threads_(threads) {}

void TeamCrew::run(SweepDesk& desk) { ThreadCrew(threads_).run(desk); }

void TeamCrew::share(SharedDesk& desk) {
  LeavableDesk shared(desk);
  std::exception_ptr own_raised, team_raised;
  std::thread own([&] {
    try {
      ThreadCrew(threads_).run(shared);
    } catch (...) {
      own_raised = std::current_exception();
      shared.leave();
    }
  });
  try {
    team_.lead([&] { return job_number(desk.kind(), shared.take()); },
               [&](std::uint64_t job, const std::string& line) {
                 desk.accept(static_cast<std::uint32_t>(job), line);
               });
  } catch (...) {
    team_raised = std::current_exception();
    shared.leave();
  }
  own.join();
  if (team_raised) std::rethrow_exception(team_raised);
  if (own_raised) std::rethrow_exception(own_raised);
}

void serve_sweep(hw::JobTeam& team, const SweepSpace& space, const SweepCandidates& candidates) {
  team.serve([&](std::uint64_t job) {
    const SweepJob kind = (job & detail_bit) != 0 ? SweepJob::detail : SweepJob::outcome;
    return sweep_job(space, candidates, kind, static_cast<std::uint32_t>(job));
  });
}

std::size_t all_cores() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace isthmus::report
