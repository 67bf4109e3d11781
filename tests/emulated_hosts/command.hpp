#pragma once
// Commands that tests of several processes run: through a shell, with what they say and their exit status.
// Where MPI is not there, or no process may be started, a test is skipped with that reason, never passed.
// Only the full gate runs these tests: they take minutes, and times are measured in them.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/test_scale.hpp"

namespace isthmus::test {

struct CommandResult {
  int status = -1;
  std::string output;  // both streams
};

inline CommandResult run_command(const std::string& command) {
  CommandResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.output.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// Why nothing of several processes can be tested here; empty where it can.
inline std::string reason_to_skip() {
  if (!full_scale()) return "only the full gate (ISTHMUS_TEST_SCALE) runs jobs of several processes";
  if (sanitized()) return "not under the sanitizers: the times are those of an optimised build";
  if (run_command("command -v mpirun").status != 0) return "mpirun is not installed";
  return {};
}

}  // namespace isthmus::test
