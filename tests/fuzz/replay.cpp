// Feeds the empty input and every file of the named folder to the fuzz target it is linked with, in the order
// of their names: the corpus as a test, for builds without libFuzzer. A folder that is missing or empty is a
// failure.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "tests/fuzz/target.hpp"

namespace {

std::vector<std::filesystem::path> files_of(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: {} FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<std::filesystem::path> files = files_of(argv[1]);
  replay("");
  for (const std::filesystem::path& file : files) {
    fmt::print("{}\n", file.filename().string());  // the last one named is the one that failed
    std::fflush(stdout);
    std::ifstream stream(file, std::ios::binary);
    replay({std::istreambuf_iterator<char>(stream), {}});
  }
  fmt::print("{} inputs\n", files.size() + 1);
  return files.empty() ? 1 : 0;
}
