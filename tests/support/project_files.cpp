#include "tests/support/project_files.hpp"

namespace isthmus {

std::filesystem::path project_folder() { return ISTHMUS_SOURCE_DIR; }

std::string program_path() { return ISTHMUS_BINARY; }

}  // namespace isthmus
