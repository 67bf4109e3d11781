#pragma once
// Where published configurations and figures lie: outside the repository, in $ISTHMUS_DATA, else in
// ../shared/data beside it. Tests that need them are skipped without.
// Invariant: nothing is written there.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/project_files.hpp"

namespace isthmus {

inline std::filesystem::path data_folder() {
  const char* data = std::getenv("ISTHMUS_DATA");
  return data != nullptr ? std::filesystem::path(data) : project_folder().parent_path() / "shared" / "data";
}

inline std::filesystem::path published_config(const std::string& model) {
  return data_folder() / "models" / model / "config.json";
}

/// The published totals; null without the data.
inline nlohmann::json expected_totals() {
  std::ifstream file(data_folder() / "models" / "expected_totals.json");
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

}  // namespace isthmus
