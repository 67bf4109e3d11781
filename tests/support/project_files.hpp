#pragma once
// Where the project's own files (scenarios, documentation) and its program stand, for tests that read or run
// them. The build gives both to project_files.cpp alone, so that no other object depends on the folder it is
// built in.

#include <filesystem>
#include <string>

namespace isthmus {

std::filesystem::path project_folder();

/// The command-line program of this build.
std::string program_path();

}  // namespace isthmus
