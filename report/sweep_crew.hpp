#pragma once
// Threads that work on a sweep. Each takes a job, does it, and takes the next.
// Invariant: what a job raises ends the work of all; the first of it is raised again once all have stopped.
// A crew of processes on several machines would take the same jobs by the same numbers.

#include <cstddef>
#include <functional>

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

/// One per core of this machine.
std::size_t all_cores();

}  // namespace isthmus::report
