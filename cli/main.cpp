// Argument parsing and printing only. Exit status: 0 done, 1 a verdict against the input, 2 bad input or
// usage, 3 the system failed.

#include <fmt/format.h>

#include "cli/commands.hpp"

int main(int argc, char** argv) {
  try {
    return isthmus::cli::run(argc, argv);
  } catch (const isthmus::InputError& error) {
    fmt::print(stderr, "isthmus: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "isthmus: {}\n", error.what());
    return 3;
  }
}
