// isthmus calibrate on the command line: what it refuses. What it measures needs GPUs.

#include <gmock/gmock.h>

#include "tests/cli/program.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class CalibrateCommand : public ProgramTest {};

TEST_F(CalibrateCommand, names_what_it_does_not_know_before_it_measures) {
  const ProgramResult backend = run("calibrate --backend nothing");
  EXPECT_EQ(backend.status, 2);
  EXPECT_THAT(backend.errors, HasSubstr("--backend"));
  const ProgramResult base = run("calibrate -o - --base nothing");
  EXPECT_EQ(base.status, 2);
  EXPECT_THAT(base.errors, HasSubstr("--base"));
  const ProgramResult rate = run("calibrate -o - --nvlink 450");
  EXPECT_EQ(rate.status, 2);
  EXPECT_THAT(rate.errors, HasSubstr("--nvlink"));
}

}  // namespace
}  // namespace isthmus
