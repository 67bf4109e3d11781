#include "hw/job_team.hpp"

#include <array>
#include <cstdlib>

#include "model/error.hpp"

#ifdef ISTHMUS_HAVE_MPI
#include "hw/mpi/job_team.hpp"
#endif

namespace isthmus::hw {

bool has_company() {
  // Open MPI's launcher; those that speak PMI (MPICH, Slurm).
  constexpr std::array sizes{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  for (const char* const name : sizes) {
    const char* const text = std::getenv(name);
    if (text != nullptr && std::atoll(text) > 1) return true;
  }
  return false;
}

std::unique_ptr<JobTeam> join_job_team([[maybe_unused]] const std::string& purpose,
                                       [[maybe_unused]] std::size_t threads) {
#ifdef ISTHMUS_HAVE_MPI
  return std::make_unique<MpiJobTeam>(purpose, threads);
#else
  throw InputError({"mpirun", 0, ""}, "several processes, of a program that was built without MPI",
                   "one process; or a program built where MPI is installed");
#endif
}

}  // namespace isthmus::hw
