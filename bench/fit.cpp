// Fits the calibration's fitted constants to the published rows (report/fit.hpp) and prints docs/fit.md.
// Run: build/release/bench/fit [FOLDER of scenarios] > docs/fit.md

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "model/error.hpp"
#include "report/fit.hpp"

int main(int argument_count, char** arguments) {
  using namespace isthmus;
  try {
    const std::filesystem::path folder = argument_count > 1
                                             ? std::filesystem::path(arguments[1])
                                             : std::filesystem::path(ISTHMUS_SOURCE_DIR) / "scenarios";
    fmt::print("{}", report::to_markdown(report::fit_constants(folder)));
    return 0;
  } catch (const InputError& error) {
    fmt::print(stderr, "fit: {}\n", error.what());
    return 2;
  }
}
