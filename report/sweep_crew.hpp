#pragma once
// Who works on a sweep: threads of this process, which take a job, do it, and take the next; or these and the
// other processes of an MPI job (hw/job_team.hpp), of which process 0 has the desk.
// Invariant: what a job raises ends the work of all; the first of it is raised again once all have stopped.
// Whoever does what, a desk gets the same lines.

#include <cstddef>
#include <functional>

#include "hw/job_team.hpp"
#include "report/sweep.hpp"

namespace isthmus::report {

class ThreadCrew : public SweepCrew {
 public:
  /// At least one thread.
  explicit ThreadCrew(std::size_t threads);
  void run(SweepDesk& desk) override;

 private:
  std::size_t threads_;
};

/// `work` for each number below `count`, on so many threads, the smaller numbers first.
void run_jobs(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

/// For process 0: `threads` of its own, beside those of the others.
class TeamCrew : public SweepCrew {
 public:
  TeamCrew(hw::JobTeam& team, std::size_t threads);
  /// What only this process can do.
  void run(SweepDesk& desk) override;
  void share(SharedDesk& desk) override;

 private:
  hw::JobTeam& team_;
  std::size_t threads_;
};

/// For the other processes: works until process 0 dismisses the team.
void serve_sweep(hw::JobTeam& team, const SweepSpace& space, const SweepCandidates& candidates);

/// One per core of this machine.
std::size_t all_cores();

}  // namespace isthmus::report
