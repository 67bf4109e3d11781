// What a team does over MPI is tested with whole programs: tests/cli/sweep_job_test.cpp.

#include "hw/job_team.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace isthmus::hw {
namespace {

/// As a launcher sets it, until the test is over.
class LauncherVariable {
 public:
  LauncherVariable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~LauncherVariable() { ::unsetenv(name_); }
  LauncherVariable(const LauncherVariable&) = delete;
  LauncherVariable& operator=(const LauncherVariable&) = delete;

 private:
  const char* name_;
};

TEST(JobTeam, has_company_where_a_launcher_started_several) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    EXPECT_FALSE(has_company()) << name;
    const LauncherVariable several(name, "2");
    EXPECT_TRUE(has_company()) << name;
  }
}

TEST(JobTeam, is_not_asked_for_where_one_was_started) {
  const LauncherVariable one("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_FALSE(has_company());
}

}  // namespace
}  // namespace isthmus::hw
