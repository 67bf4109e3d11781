// Sweeps by several processes, and sweeps that are killed: the bytes are those of one undisturbed process.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/cli/program.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus {
namespace {

/// Why no job of several processes can run here; empty where one can.
std::string reason_for_no_job() {
#ifndef ISTHMUS_HAVE_MPI
  return "built without MPI";
#else
  if (test::sanitized()) return "not under the sanitizers: MPI itself leaks";
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) return "mpirun is not installed";
  if (std::system(
          "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 1 true "
          ">/dev/null 2>&1") != 0)
    return "mpirun starts no process here";
  return {};
#endif
}

class SweepJobs : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    space_ = folder_.write("space.yaml",
                           "name: small\n"
                           "model: {config: models/deepseek-v3.json, layers: 2}\n"
                           "fabric: {preset: dgx-h100, hosts: 3}\n"
                           "train: {gpus: 8, tp: [1, 2], etp: 1}\n"
                           "generate: {gpus: [8, 16], tp: [4, 8]}\n"
                           "policies: [p2p, striped]\n"
                           "calibrations: h100-ib400\n");
  }

  std::string program(const std::string& options) const {
    return fmt::format("'{}' sweep --no-prune --csv {} '{}' >'{}' 2>'{}'", program_path(), options,
                       space_.string(), path("output"), path("errors"));
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string kept() const { return "--resume '" + path("kept") + "'"; }

  /// Each process leaves its number in a file.
  std::string job(const std::string& options) const {
    return fmt::format(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec mpirun --oversubscribe "
        "--mca odls_base_sigkill_timeout 1 -n 2 sh -c 'echo $$ >{}/process.$OMPI_COMM_WORLD_RANK; "
        "exec \"{}\" sweep --no-prune --csv {} \"{}\"' >'{}' 2>'{}'",
        folder_.path().string(), program_path(), options, space_.string(), path("output"), path("errors"));
  }

  std::string bytes_of(const std::string& command) const {
    EXPECT_EQ(std::system(command.c_str()), 0) << read_file(path("errors"));
    return read_file(path("output"));
  }

  std::size_t finished() const {
    const std::string text = read_file(path("kept/finished"));
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  /// Starts it; once so many lines are kept, kills the process that `victim` names (0: the one started).
  /// Returns whether it was killed before its end.
  template <class Victim>
  bool killed_at(const std::string& command, std::size_t lines, const Victim& victim) const {
    std::filesystem::remove_all(path("kept"));
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (finished() < lines && std::chrono::steady_clock::now() < end) {
      if (::waitpid(child, &status, WNOHANG) == child) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const pid_t one = victim();
    ::kill(one == 0 ? child : one, SIGKILL);
    ::waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }

  std::filesystem::path space_;
};

TEST_F(SweepJobs, killed_at_any_point_resume_to_the_same_bytes) {
  const std::string whole = bytes_of(program("--threads 1"));
  for (const std::size_t lines : {1U, 4U, 9U}) {
    bool amid = false;
    for (int attempt = 0; attempt < 5 && !amid; ++attempt) {
      const bool killed = killed_at("exec " + program("--threads 1 " + kept()), lines, [] { return 0; });
      const std::size_t before = finished();
      EXPECT_EQ(bytes_of(program("--threads 1 " + kept())), whole) << "killed at " << lines;
      amid = killed && before < finished();
    }
    EXPECT_TRUE(amid) << "no kill met a run half-way, at " << lines;
  }
}

TEST_F(SweepJobs, of_two_processes_give_the_bytes_of_one_thread_and_of_two) {
  if (const std::string reason = reason_for_no_job(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string whole = bytes_of(program("--threads 1"));
  EXPECT_EQ(bytes_of(program("--threads 2")), whole);
  EXPECT_EQ(bytes_of(job("--threads 1")), whole);
}

TEST_F(SweepJobs, of_two_processes_killed_resume_to_the_same_bytes) {
  if (const std::string reason = reason_for_no_job(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string whole = bytes_of(program("--threads 1"));
  for (const char* const process : {"process.0", "process.1"}) {
    bool killed = false;
    for (int attempt = 0; attempt < 5 && !killed; ++attempt)
      killed = killed_at(job(kept()), 4, [&] { return std::stoi(read_file(path(process))); });
    EXPECT_TRUE(killed) << process;
    EXPECT_EQ(bytes_of(job(kept())), whole) << process;
  }
}

TEST_F(SweepJobs, of_processes_that_do_different_things_are_refused) {
  if (const std::string reason = reason_for_no_job(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string command = job("--set refit.streams=$((1+OMPI_COMM_WORLD_RANK))");
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(read_file(path("errors")).find("does something else"), std::string::npos)
      << read_file(path("errors"));
}

}  // namespace
}  // namespace isthmus
