#pragma once
// A team (hw/job_team.hpp) over MPI. Process 0 sends a job to whoever computes fewer than it has threads;
// results come back as they are ready. Only the thread that joined calls MPI; it polls with naps, so results
// wait a millisecond at most. A job may take as long as it likes: what is watched is that MPI itself answers
// (MpiWorld) and that the launcher does not want an end.

#include <cstdint>
#include <string>
#include <vector>

#include "hw/job_team.hpp"
#include "hw/mpi/world.hpp"

namespace isthmus::hw {

class MpiJobTeam : public JobTeam {
 public:
  MpiJobTeam(const std::string& purpose, std::size_t threads);
  bool leads() const override { return world_.process() == 0; }
  std::size_t size() const override { return world_.size(); }
  void lead(const Take& take, const Accept& accept) override;
  void dismiss() override;
  void serve(const Compute& compute) override;

 private:
  /// A message that has come: the job, and the result where it is one.
  struct Message {
    std::uint32_t process = 0;
    std::uint64_t job = 0;
    std::string result;
  };
  bool receive(Message& message);
  void send(std::uint32_t process, std::uint64_t job, const std::string& result);
  /// Lets time pass, unless the launcher wants an end.
  void nap();

  MpiWorld world_;
  std::size_t threads_;
  std::vector<std::uint64_t> threads_of_;  // by process
};

}  // namespace isthmus::hw
