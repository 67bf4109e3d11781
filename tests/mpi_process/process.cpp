// One process of a job whose processes die, stay away or disagree, for tests/emulated_hosts/faults_test.cpp:
//   process SCENARIO POLICY DEADLINE FAULT PROCESS
// executes a plan with every other process; the one whose number is PROCESS has the fault:
//   none        nothing happens
//   before      killed when all are there, before its first step
//   during      killed when half of its steps are complete
//   after       killed when all of its steps are complete, before the others know
//   away        stops for ever where `before` would have died
//   absent      never joins the job
//   order       takes the tensors in the reverse order, one by one as the others do
// Exit status as that of isthmus: 0 byte-exact, 1 not, 3 failed, with the reason on standard error.

#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "hw/mpi/mpi.hpp"
#include "model/error.hpp"
#include "model/scenario.hpp"
#include "planner/policy.hpp"

namespace isthmus {
namespace {

struct Fault {
  std::string kind;
  std::uint32_t process = 0;
};

/// The launcher's number of this process, known before MPI is.
std::uint32_t launched_process() {
  const char* const text = std::getenv("OMPI_COMM_WORLD_RANK");
  return text == nullptr ? 0 : static_cast<std::uint32_t>(std::stoul(text));
}

/// Until the launcher ends the job.
void stay_away() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  while (true) ::pause();
}

/// Steps that a process completes; where there are many, it dies among them.
std::size_t own_steps(const hw::Program& program, std::uint32_t process) {
  std::size_t count = 0;
  for (const Operation& operation : program.operations().list)
    count += operation.source.value == process || operation.target.value == process ? 1U : 0U;
  return count;
}

hw::MpiRun::Watch watch_of(const Fault& fault, std::size_t steps) {
  return [fault, steps](std::size_t complete) {
    const bool before = complete == 0, after = complete == steps;
    const bool during = complete == (steps + 1) / 2;
    if (fault.kind == "away" && before) stay_away();
    if ((fault.kind == "before" && before) || (fault.kind == "during" && during) ||
        (fault.kind == "after" && after))
      ::kill(::getpid(), SIGKILL);
  };
}

void reverse_order(Plan& plan) {
  for (std::size_t i = 0; i < plan.instances.size() / 2; ++i)
    std::swap(plan.instances[i].group, plan.instances[plan.instances.size() - 1 - i].group);
}

int run(const Refit& refit, Plan plan, double deadline, const Fault& fault) {
  const bool here = launched_process() == fault.process && fault.kind != "none";
  for (Lane& lane : plan.lanes) lane.window = 1;
  if (here && fault.kind == "absent") stay_away();
  if (here && fault.kind == "order") reverse_order(plan);
  const hw::Program program(refit, plan);
  hw::MpiSettings settings;
  if (here) settings.watch = watch_of(fault, own_steps(program, fault.process));
  hw::RunOptions options;
  options.deadline = {static_cast<std::int64_t>(deadline * static_cast<double>(picoseconds_per_second))};
  return hw::MpiExecutor(settings).run(program, options).byte_exact() ? 0 : 1;
}

}  // namespace
}  // namespace isthmus

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    const isthmus::Refit refit = isthmus::resolve(isthmus::read_scenario(argv[1]));
    const auto plan = isthmus::find_policy(argv[2])->make(refit);
    const isthmus::Fault fault{argv[4], static_cast<std::uint32_t>(std::stoul(argv[5]))};
    return isthmus::run(refit, std::get<isthmus::Plan>(plan), std::stod(argv[3]), fault);
  } catch (const isthmus::SystemError& error) {
    fmt::print(stderr, "process {}: {}\n", isthmus::launched_process(), error.what());
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "process {}: {}\n", isthmus::launched_process(), error.what());
    return 2;
  }
}
