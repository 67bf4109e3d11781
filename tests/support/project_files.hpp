#pragma once
// Where the project's own files (scenarios, documentation) stand, for tests that read them.
// The build gives the folder; without a build (a single file compiled by hand) it follows from this file's
// own place.

#include <filesystem>

namespace isthmus {

inline std::filesystem::path project_folder() {
#ifdef ISTHMUS_SOURCE_DIR
  return ISTHMUS_SOURCE_DIR;
#else
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
#endif
}

}  // namespace isthmus
