// Jobs whose processes die, stay away or disagree: every survivor names a step and a rank, ends with exit
// status 3, and does so in time. Kinds of faults: tests/mpi_process/process.cpp.

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulated_hosts/command.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int processes = 4;
constexpr double deadline = 1, grace = 10;  // seconds

struct BrokenJob {
  std::string kind;
  int process = 0;
  /// What the launcher does when a process has died: nothing, so that only deadlines help; or it ends the
  /// others, which say so first.
  bool left_alone = true;
  bool shared_memory = false;  // in place of TCP
};

class MpiFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
  }

  std::string text_of(const std::string& name) const {
    std::ifstream stream(folder_.path() / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  /// Runs the job; returns how long it took, in seconds.
  double run(const BrokenJob& job) {
    for (int p = 0; p < processes; ++p) {
      std::filesystem::remove(folder_.path() / fmt::format("status.{}", p));
      std::filesystem::remove(folder_.path() / fmt::format("errors.{}", p));
    }
    const std::string command = fmt::format(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --kill-after=5 30 mpirun "
        "--oversubscribe {} --mca odls_base_sigkill_timeout 2 {} -n {} '{}' '{}' '{}' '{}' p2p {} {} {}",
        job.left_alone ? "--enable-recovery" : "",
        job.shared_memory ? "--mca btl vader,self" : "--mca btl tcp,self --mca btl_tcp_if_include lo",
        processes, (project_folder() / "tests/emulated_hosts/rank.sh").string(), folder_.path().string(),
        process_program(), (project_folder() / "scenarios/emulated/four-tensors.yaml").string(), deadline,
        job.kind, job.process);
    const auto start = std::chrono::steady_clock::now();
    output_ = test::run_command(command).output;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static std::string process_program() {
    return (std::filesystem::path(program_path()).parent_path() / "tests/isthmus_mpi_process").string();
  }

  void expect_all(const std::string& status) const {
    for (int p = 0; p < processes; ++p)
      EXPECT_EQ(text_of(fmt::format("status.{}", p)), status + "\n") << text_of(fmt::format("errors.{}", p));
  }

  void expect_survivors(const BrokenJob& job) {
    for (int p = 0; p < processes; ++p) {
      if (p == job.process && job.kind != "order") continue;
      const std::string errors = text_of(fmt::format("errors.{}", p));
      if (!job.left_alone && text_of(fmt::format("status.{}", p)).empty()) {
        ++cut_off_;
        continue;
      }
      EXPECT_EQ(text_of(fmt::format("status.{}", p)), "3\n") << "process " << p << ": " << errors << output_;
      EXPECT_THAT(errors, AllOf(HasSubstr("(rank "), HasSubstr("step "), HasSubstr(" of tensor "),
                                AnyOf(HasSubstr("not complete after"), HasSubstr("ended by the launcher"))))
          << "process " << p;
    }
  }

  TemporaryFolder folder_;
  std::string output_;
  int cut_off_ = 0;  // survivors that the launcher killed while they were about to end: its doing, not theirs
};

TEST_F(MpiFaults, a_job_without_a_fault_ends_byte_exact_with_the_same_windows) {
  for (const bool shared_memory : {false, true}) {
    (void)run({"none", 0, false, shared_memory});
    expect_all("0");
  }
}

TEST_F(MpiFaults, survivors_name_step_and_rank_and_end_with_status_3_in_time) {
  constexpr std::array<const char*, 5> kinds{"before", "during", "after", "away", "order"};
  double longest = 0;
  for (int r = 0; r < 50; ++r) {
    const std::string kind = kinds[static_cast<std::size_t>(r) % kinds.size()];
    const int round = r / static_cast<int>(kinds.size());
    // Left alone, a process that stays away for ever would keep the launcher waiting.
    const BrokenJob job{kind, round % processes, kind != "away" && kind != "order" && round % 2 == 0,
                        round % 3 == 2};
    SCOPED_TRACE(fmt::format("run {}: {}, process {}", r, kind, job.process));
    const double took = run(job);
    longest = std::max(longest, took);
    EXPECT_LE(took, deadline + grace);
    expect_survivors(job);
  }
  fmt::print("50 broken jobs, the longest took {:.1f} s; the launcher killed {} survivors\n", longest,
             cut_off_);
  EXPECT_LE(cut_off_, 5);
}

TEST_F(MpiFaults, a_process_that_never_joins_is_not_waited_for_longer_than_deadline_and_grace) {
  const BrokenJob job{"absent", 2, false, false};
  EXPECT_LE(run(job), deadline + grace + 5);  // the launcher ends the absent one
  bool said = false;
  for (int p = 0; p < processes; ++p) {
    if (p == job.process) continue;
    const std::string status = text_of(fmt::format("status.{}", p));
    EXPECT_EQ(status, "3\n") << "process " << p;
    said |= text_of(fmt::format("errors.{}", p)).find("does not come back from MPI") != std::string::npos;
  }
  EXPECT_TRUE(said) << output_;
}

}  // namespace
}  // namespace isthmus
