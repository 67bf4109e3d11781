#pragma once
// The processes of one job (mpirun, srun) that share out work: process 0 leads, the others serve. A job is a
// number, its result a text; who computes which follows from who is free. Built without MPI, or started
// alone, there is no team.
// Invariant: each number that `take` gives is accepted once, in any order, on the thread that called lead().
// Where a process dies, the launcher ends the others; what was accepted by then is for the caller to keep.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace isthmus::hw {

class JobTeam {
 public:
  using Take = std::function<std::optional<std::uint64_t>()>;  // nullopt: nothing is left to begin
  using Accept = std::function<void(std::uint64_t job, const std::string& result)>;
  using Compute = std::function<std::string(std::uint64_t job)>;  // from any thread

  virtual ~JobTeam() = default;
  virtual bool leads() const = 0;
  virtual std::size_t size() const = 0;
  /// Process 0: hands jobs to the others until nothing is left and all results are there.
  virtual void lead(const Take& take, const Accept& accept) = 0;
  /// Process 0, once: the others may go.
  virtual void dismiss() = 0;
  /// Other processes: compute what they are given until they may go.
  virtual void serve(const Compute& compute) = 0;

 protected:
  JobTeam() = default;
  JobTeam(const JobTeam&) = delete;
  JobTeam& operator=(const JobTeam&) = delete;
};

/// Whether a launcher started this process as one of several.
bool has_company();

/// Joins the others. `purpose` has to be the same for all, or SystemError says so; each computes so many jobs
/// at a time as it has threads. Raises InputError where there is company, but this program has no MPI.
std::unique_ptr<JobTeam> join_job_team(const std::string& purpose, std::size_t threads);

}  // namespace isthmus::hw
