#pragma once
// Runs the built program as its users do, through a shell, in a folder of the test's own that holds copies of
// the project's calibrations and DeepSeek-V3 configuration. Standard output and error come back apart.
// Invariant: nothing outside that folder is written.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {

struct ProgramResult {
  int status = -1;
  std::string output, errors;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(project_folder() / "scenarios/calibrations", folder_.path() / "calibrations");
    folder_.write("models/deepseek-v3.json",
                  read_file(project_folder() / "scenarios/models/deepseek-v3.json"));
  }

  ProgramResult run(const std::string& arguments) const {
    const auto errors = folder_.path() / "stderr";
    const std::string command = fmt::format("'{}' {} 2>'{}'", program_path(), arguments, errors.string());
    ProgramResult result;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
      result.output.append(buffer.data(), n);
    }
    result.status = WEXITSTATUS(::pclose(pipe));
    result.errors = read_file(errors);
    return result;
  }

  TemporaryFolder folder_;
};

}  // namespace isthmus
